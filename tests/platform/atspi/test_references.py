"""References that cannot lie: bound to what an element is, never reused, refused with the likeliest successor."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop
from support.forms import Form, lacking, on_the_bus, open_form
from support.road import Road, computer_scope
from support.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


@pytest.fixture(scope="module", params=["gtk3", "qt6"])
def form(request: pytest.FixtureRequest, desktop: Desktop) -> Iterator[Form]:
    if lack := lacking(request.param):
        pytest.skip(f"not installed: {lack}")
    opened = open_form(desktop, request.param)
    yield opened
    desktop.end(opened.process)


async def test_the_same_element_keeps_its_reference(session: Session) -> None:
    first = (await session.find("button", "Press me"))[0]
    again = (await session.find("button", "Press me"))[0]
    assert first["ref"] == again["ref"]


async def test_a_reference_acts_on_its_element(session: Session) -> None:
    ref = (await session.find("button", "Press me"))[0]["ref"]
    before = len(session.form.events("clicked"))
    reply = await session.call("desktop.click", ref)
    assert reply["data"]["element"] == {"ref": ref, "role": "push-button", "name": "Press me"}
    await session.form.told("clicked", lambda one: one["count"] == before + 1)


async def test_a_changed_element_is_refused_and_its_successor_offered(session: Session) -> None:
    label = next(one for one in await session.find("label") if one["name"].startswith("clicks: "))
    await session.data("desktop.click", session.at("button", "Press me"))
    before = session.form.events()
    reply = await session.call("desktop.click", label["ref"])
    error = reply["error"]
    assert error["code"] == "stale_reference"
    assert error["details"]["reason"] == "its name has changed"
    best = error["details"]["best"]
    assert best["name"].startswith("clicks: ")
    assert best["name"] != label["name"]
    assert best["ref"] != label["ref"]
    assert 0.5 < best["score"] < 1
    assert session.form.events() == before


async def test_an_unknown_reference_is_stale(session: Session) -> None:
    for ref in ("e1.zzzz", "e999999", "nonsense"):
        assert (await session.call("desktop.click", ref))["error"]["code"] == "stale_reference"


async def test_a_reference_of_another_scope_is_stale(tmp_path: Path, desktop: Desktop, form: Form) -> None:
    computer = this_computer(desktop.env)
    async with Road.open(tmp_path, scopes=[computer_scope("a"), computer_scope("b")], computer=computer) as road:
        await on_the_bus(computer, form)
        selector = {"selector": {"role": "button", "name": "Press me"}}
        ref = (await road.data("desktop.find", {"app": form.app}, scope="a", input=selector))["elements"][0]["ref"]
        before = form.events("clicked")
        assert await road.code("desktop.click", ref, scope="b") == "stale_reference"
        assert form.events("clicked") == before


async def test_an_element_of_an_ended_application_is_stale(tmp_path: Path, desktop: Desktop, form: Form) -> None:
    computer = this_computer(desktop.env)
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as road:
        app = await on_the_bus(computer, form)
        other = open_form(desktop, form.toolkit)
        assert other.process is not None and form.process is not None
        route = {"pid": other.process.pid}
        selector = {"selector": {"role": "button", "name": "Press me"}}
        reply = None
        for _ in range(200):
            reply = await road.call("desktop.find", route, scope="desk", input=selector)
            if reply["ok"] and reply["data"]["elements"]:
                break
        assert reply is not None and reply["ok"], reply
        ref = reply["data"]["elements"][0]["ref"]
        desktop.end(other.process)
        before = form.events("clicked")
        refused = await road.call("desktop.click", ref, scope="desk")
        assert refused["error"]["code"] == "stale_reference"
        # The other instance of the same application is offered, never silently used.
        best = refused["error"]["details"]["best"]
        assert best["name"] == "Press me"
        assert form.events("clicked") == before
        assert app.pid == form.process.pid


async def test_since_tells_the_changes_only(session: Session) -> None:
    whole = await session.data("ui.tree", session.form.app)
    quiet = await session.data("ui.tree", session.form.app, options={"since": whole["cursor"]})
    assert (quiet["nodes"], quiet["removed"]) == ([], [])
    await session.data("desktop.click", session.at("checkbox", "check it"))
    changed = await session.data("ui.tree", session.form.app, options={"since": quiet["cursor"]})
    assert [one["name"] for one in changed["nodes"] if one["role"] == "check-box"] == ["check it"]
    assert len(changed["nodes"]) < len(whole["nodes"]) / 2
    for wrong in ("view_unknown", quiet["cursor"]):
        target = session.form.app if wrong != quiet["cursor"] else session.form.title
        reply = await session.call("ui.tree", target, options={"since": wrong})
        assert reply["error"]["code"] in ("stale_reference", "invalid_request")
