"""Budgets, refusals and policy: what a tree bomb, an excluded application or an abort comes to."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop
from support.forms import Form, lacking, on_the_bus, open_form
from support.road import LOCAL, Road, computer_scope
from support.session import Session
from support.waiting import until_awaited

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


@pytest.fixture(scope="module")
def form(desktop: Desktop) -> Iterator[Form]:
    if lack := lacking("gtk3"):
        pytest.skip(f"not installed: {lack}")
    opened = open_form(desktop, "gtk3")
    yield opened
    desktop.end(opened.process)


async def test_boundless_limits_are_lowered(session: Session) -> None:
    started = time.monotonic()
    options = {"axMaxDepth": 1_000_000_000, "axMaxNodes": 1_000_000_000, "includeScreenshot": False}
    reply = await session.call("desktop.observe", {"app": session.form.app}, options=options)
    assert reply["ok"], reply
    assert "lowered" in reply["warnings"][0]
    assert time.monotonic() - started < 60


async def test_a_small_budget_cuts_and_says_so(session: Session) -> None:
    tree = await session.data("ui.tree", session.form.app, options={"maxNodes": 5})
    assert len(tree["nodes"]) == 5
    assert tree["truncated"] is True
    assert tree["cutBy"] == ["nodes"]


async def test_an_observation_has_a_screenshot_whose_points_can_be_clicked(session: Session) -> None:
    seen = await session.data("desktop.observe", session.form.title)
    assert seen["route"]["window"] == session.form.title
    button = next(one for one in seen["evidence"]["nodes"] if one["name"] == "Press me")
    shot = seen["evidence"]["screenshot"]
    area, bounds = shot["area"], button["bounds"]
    x = (bounds["x"] - area["x"] + bounds["width"] / 2) * shot["width"] / area["width"]
    y = (bounds["y"] - area["y"] + bounds["height"] / 2) * shot["height"] / area["height"]
    before = len(session.form.events("clicked"))
    windows = await session.road.app.dispatcher.computer.windows.list()
    await session.road.app.dispatcher.computer.windows.focus(windows[0].id)
    reply = await session.call("desktop.click", {"frameId": seen["frameId"], "x": x, "y": y})
    assert reply["ok"], reply
    assert reply["data"]["method"] == "pointer"
    await session.form.told("clicked", lambda one: one["count"] == before + 1)


async def test_an_observation_without_the_screen_capability_has_no_screenshot(
    tmp_path: Path, desktop: Desktop, form: Form
) -> None:
    scope = {**computer_scope(), "capabilities": ["desktop:observe"]}
    computer = this_computer(desktop.env)
    async with Road.open(tmp_path, scopes=[scope], computer=computer) as road:
        await on_the_bus(computer, form)
        seen = await road.call("desktop.observe", {"app": form.app}, scope="desk")
        assert seen["data"]["frameId"] is None
        assert "screenshot" in seen["warnings"][-1]
        before = form.events("clicked")
        selector = {"selector": {"role": "button", "name": "Press me"}, "route": {"app": form.app}}
        assert await road.code("desktop.click", selector, scope="desk") == "permission_denied"
        assert form.events("clicked") == before


async def test_an_excluded_application_is_out_of_reach(tmp_path: Path, desktop: Desktop, form: Form) -> None:
    computer = this_computer(desktop.env)
    scopes = [computer_scope(excludedApplications=["GTK3-*"]), computer_scope("open")]
    async with Road.open(tmp_path, scopes=scopes, computer=computer) as road:
        await on_the_bus(computer, form)
        route = {"app": form.app}
        selector = {"role": "button", "name": "Press me"}
        before = form.events("clicked")
        assert await road.code("ui.tree", form.app, scope="desk") == "permission_denied"
        assert await road.code("desktop.find", route, scope="desk", input={"selector": selector}) == "permission_denied"
        target = {"selector": selector, "route": route}
        assert await road.code("desktop.click", target, scope="desk") == "permission_denied"
        reply = await road.call("ui.tree", "no such thing", scope="desk")
        assert form.app not in str(reply)
        assert form.events("clicked") == before
        assert (await road.call("ui.tree", form.app, scope="open"))["ok"]


async def test_an_abort_ends_a_wait_and_nothing_else(session: Session) -> None:
    replies: dict[str, dict[str, Any]] = {}

    async def wait() -> None:
        replies["wait"] = await session.call(
            "desktop.wait_until",
            {"app": session.form.app},
            input={"condition": {"textAppears": "never"}},
            options={"timeoutSeconds": 60, "executionId": "mine"},
        )

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            stranger = await session.road.call(
                "desktop.abort",
                "mine",
                scope="desk",
                principal=replace(LOCAL, id="local:other"),
            )
            assert stranger["error"]["code"] == "invalid_request"

            async def aborted() -> dict[str, Any] | None:
                answer = await session.call("desktop.abort", "mine")
                return answer if answer["ok"] else None

            reply = await until_awaited(aborted)
    assert reply is not None
    assert reply["data"] == {"aborted": True, "executionIds": ["mine"]}
    assert replies["wait"]["error"]["code"] == "aborted"
    assert (await session.call("desktop.abort", "mine"))["error"]["code"] == "invalid_request"
    assert (await session.data("desktop.abort"))["aborted"] is False


@pytest.mark.parametrize(
    "target",
    [
        {"ref": "e1.abcd", "selector": {"name": "x"}},
        {"frameId": "frame_1", "x": 1},
        {"x": 1, "y": 2},
        {"frameId": "frame_1", "x": float("1e99"), "y": 1},
        {"selector": {}},
        {"selector": {"name": ""}},
        {"selector": {"nmae": "x"}},
        {"ref": ""},
        "",
        "x" * 41,
        {},
        [],
        7,
    ],
)
async def test_a_target_that_is_none_is_refused(session: Session, target: object) -> None:
    before = session.form.events()
    assert (await session.call("desktop.click", target))["error"]["code"] == "invalid_request"
    assert session.form.events() == before


async def test_a_frame_that_is_none_is_stale(session: Session) -> None:
    reply = await session.call("desktop.click", {"frameId": "frame_none", "x": 1, "y": 1})
    assert reply["error"]["code"] == "stale_reference"
