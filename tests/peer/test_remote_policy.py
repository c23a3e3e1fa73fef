"""The machine acted upon has the last word on every facet call: its scopes, confirmations, paths and history."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.facets.files import Remove, Window, Write
from computer_linker.computer.remote.computer import RemoteComputer
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.errors import ConfirmRequired, LinkError, PathOutOfScope, PermissionDenied
from computer_linker.model.geometry import Point, Rect
from computer_linker.model.paths import PathRules, RootedPath
from support.pair import Pair, events_of, open_pair
from support.road import computer_scope, folder_scope

pytestmark = pytest.mark.anyio
AT = Point(x=150, y=150)


class Remote:
    """A pair whose laptop is simulated, with its desktop seen from the desk."""

    def __init__(self, pair: Pair, near: SimulatedComputer, far: RemoteComputer) -> None:
        self.pair, self.near, self.far = pair, near, far
        self.window = near.world.open("editor", "Notes", Rect(x=100, y=100, width=400, height=300))


@asynccontextmanager
async def remote(tmp_path: Path, *grants: str, **policy: Any) -> AsyncIterator[Remote]:
    near = SimulatedComputer()
    scopes = [computer_scope(**policy), folder_scope(tmp_path / "laptop" / "root")]
    async with open_pair(tmp_path, scopes, near) as pair:
        await pair.paired(*(grants or ("desk", "app")))
        yield Remote(pair, near, await pair.routes.remote_computer("laptop"))


async def test_what_was_not_given_is_refused_and_recorded(tmp_path: Path) -> None:
    async with remote(tmp_path, "desk:screen:capture") as seen:
        assert len((await seen.far.screen.capture()).data) == 1280 * 800 * 4
        for act in (
            seen.far.pointer.click(AT), seen.far.keyboard.type_text("x"), seen.far.clipboard.read(),
            seen.far.windows.close(seen.window.id), seen.far.apps.close("editor"), seen.far.facts.lock_screen(),
        ):  # fmt: skip
            with pytest.raises(PermissionDenied):
                await act
        assert (seen.window.log, seen.window.text, seen.near.world.is_locked) == ([], "", False)
        assert seen.near.world.windows == [seen.window]
        (event,) = await events_of(seen.pair.laptop, "input.click")
        assert (event["principal"], event["decision"], event["scope"]) == (seen.pair.caller, "deny", "desk")


async def test_a_scope_that_asks_a_person_asks_for_a_peer_too(tmp_path: Path) -> None:
    async with remote(tmp_path, confirm="act") as seen:
        for act in (seen.far.pointer.click(AT), seen.far.clipboard_set_text("secret")):
            with pytest.raises(ConfirmRequired):
                await act
        assert (seen.window.log, seen.near.world.clip.forms) == ([], {})
        assert await seen.far.windows.focused() is not None


async def test_an_act_is_in_the_history_before_and_after(tmp_path: Path) -> None:
    async with remote(tmp_path) as seen:
        await seen.far.click(AT)
        (event,) = await events_of(seen.pair.laptop, "input.click")
        assert (event["ok"], event["effect"], event["capability"]) == (True, "unverifiable", "desktop:control")
        await seen.far.windows.place(seen.window.id, Rect(x=10, y=10, width=300, height=200))
        (event,) = await events_of(seen.pair.laptop, "windows.place")
        assert (event["ok"], event["effect"]) == (True, "confirmed")


async def test_a_halted_desktop_takes_no_act_from_afar(tmp_path: Path) -> None:
    async with remote(tmp_path) as seen:
        seen.pair.laptop.app.dispatcher.queues.halt()
        with pytest.raises(LinkError) as refused:
            await seen.far.click(AT)
        assert refused.value.code == "aborted"
        assert seen.window.log == []


@pytest.mark.parametrize(
    ("policy", "rule"),
    [({"allowDisplays": False}, "allowDisplays"), ({"excludedApplications": ["bank"]}, "excludedApplications")],
)
async def test_finer_rules_of_the_scope_hold_for_pictures(tmp_path: Path, policy: dict[str, Any], rule: str) -> None:
    async with remote(tmp_path, **policy) as seen:
        with pytest.raises(PermissionDenied) as refused:
            await seen.far.screen.capture()
        assert refused.value.details["rule"] == rule


@pytest.mark.parametrize(
    ("root", "parts", "rules"),
    [
        ("/", ("etc", "passwd"), PathRules()),
        ("app", ("..", "secret"), PathRules()),
        ("app", ("a/../../secret",), PathRules()),
        ("app", (".env",), PathRules(allow_sensitive=True)),
        ("app", ("",), PathRules()),
    ],
)
async def test_no_path_leads_out_whatever_the_caller_says(
    tmp_path: Path, root: str, parts: tuple[str, ...], rules: PathRules
) -> None:
    (tmp_path / "secret").write_text("no")
    async with remote(tmp_path) as seen:
        path = RootedPath(root, parts, rules)
        for use in (
            seen.far.files.read(path, Window(100)),
            seen.far.files.change([Write(path, b"x")], gate=_open),
            seen.far.files.change([Remove(path, recursive=True)], gate=_open),
        ):
            with pytest.raises((PathOutOfScope, PermissionDenied, LinkError)):
                await use
        assert (tmp_path / "secret").read_text() == "no"
        assert not await events_of(seen.pair.laptop, "files.change") or all(
            not event["ok"] for event in await events_of(seen.pair.laptop, "files.change")
        )


async def test_protected_names_stay_protected(tmp_path: Path) -> None:
    async with remote(tmp_path) as seen:
        hook = RootedPath("app", (".git", "hooks", "pre-commit"), PathRules(allow_protected=True))
        with pytest.raises(PermissionDenied):
            await seen.far.files.change([Write(hook, b"#!/bin/sh", create_parents=True)], gate=_open)


async def test_a_subscriber_gets_no_more_than_it_has_room_for(tmp_path: Path) -> None:
    async with remote(tmp_path) as seen:
        changes = seen.far.screen.changes()
        waiting = changes.__aiter__()
        got = 0
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(_stir, seen)
                async for areas in waiting:
                    assert areas
                    got += 1
                    if got == 300:
                        break
                group.cancel_scope.cancel()
        await changes.aclose()  # type: ignore[attr-defined]  # a generator
        (link,) = [link for _, link in seen.pair.routes._links.values()]
        assert link._waiting == {}
        assert (await seen.far.windows.focused()) is not None


async def _stir(seen: Remote) -> None:
    while True:
        for _ in range(20):
            seen.near.world.changed(Rect(x=0, y=0, width=10, height=10))
        await anyio.sleep(0.001)  # changes at a pace that a screen has


async def _open() -> None:
    return None
