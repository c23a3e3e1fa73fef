"""The promises of apps, notices, facts and the manifest."""

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.notifications import Notification
from computer_linker.computer.manifest import FACETS
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.errors import NotFound, OsPermissionRequired, UnsupportedPlatform

pytestmark = pytest.mark.anyio


async def test_the_manifest_speaks_of_every_facet_and_gives_reasons(computer: Computer) -> None:
    facets = computer.capabilities().facets
    assert set(facets) == set(FACETS)
    assert all(state.backend for state in facets.values() if state.state == "present")
    assert all(state.reason for state in facets.values() if state.state != "present")


async def test_the_environment_names_the_session(computer: Computer) -> None:
    environment = await computer.facts.environment()
    known = {("linux", "x11"), ("linux", "wayland"), ("simulated", "simulated")}
    assert (environment.system, environment.session) in known


async def test_an_application_that_is_not_there_cannot_be_opened_or_closed(computer: Computer) -> None:
    for act in (computer.apps.open("no-such-app"), computer.apps.close("no-such-app"), computer.apps.focus("nothing")):
        with pytest.raises(NotFound):
            await act


async def test_a_facet_nobody_provided_refuses_every_use() -> None:
    empty = Computer()
    with pytest.raises(UnsupportedPlatform):
        await empty.screen.capture()
    with pytest.raises(UnsupportedPlatform):
        empty.facts.input()
    assert empty.capabilities().facets["screen"].state == "missing"


async def test_a_facet_that_waits_for_a_grant_is_blocked() -> None:
    from computer_linker.computer.manifest import Absent

    computer = Computer()
    computer.provide("screen", Absent("screen", "Not granted.", "Grant it.", OsPermissionRequired), backend="")
    with pytest.raises(OsPermissionRequired):
        await computer.screen.displays()
    state = computer.capabilities().facets["screen"]
    assert (state.state, state.reason, state.remedy) == ("blocked", "Not granted.", "Grant it.")


async def test_a_simulated_notice_reaches_whoever_listens() -> None:
    computer = SimulatedComputer()
    notice = Notification(app="mail", summary="New", body="", received_at="2026-11-16T00:00:00.000Z")
    heard: list[Notification] = []

    async def listen() -> None:
        async for one in computer.notifications.subscribe():
            heard.append(one)
            return

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await anyio.wait_all_tasks_blocked()
            computer.world.happened(notice)
    assert heard == [notice]
