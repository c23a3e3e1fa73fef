"""The computer's processes, its notices and its lock, as operations; and running a program, a pointer and a key event as values."""

import os
import sys
from pathlib import Path

import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.keyboard import KeyEvent
from computer_linker.computer.facets.notifications import Notification
from computer_linker.computer.facets.pointer import PointerEvent
from computer_linker.computer.local.linux.facts import LinuxFacts
from computer_linker.computer.local.linux.processes import LinuxProcesses
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.errors import InvalidRequest
from computer_linker.model.geometry import Point
from support.road import Road, computer_scope

pytestmark = pytest.mark.anyio
OWN = ["process:observe", "notifications:read", "session:lock"]


def machine_scope(scope_id: str = "machine", *, capabilities: list[str] = OWN, **policy: object) -> dict[str, object]:
    return {**computer_scope(scope_id, **policy), "capabilities": capabilities}


@pytest.mark.skipif(sys.platform != "linux", reason="processes are listed from /proc")
async def test_the_processes_of_the_machine_are_listed(tmp_path: Path) -> None:
    """Points 002-009, 002-019 and 002-030: names, parents and sizes of real processes, and no arguments."""
    scopes = [
        machine_scope(),
        machine_scope("closed", allowProcesses=False),
        machine_scope("blind", excludedApplications=["python*", "pytest*"]),
        machine_scope("other", capabilities=["desktop:observe", "desktop:control", "process:manage"]),
    ]
    async with Road.open(tmp_path, scopes) as road:
        data = await road.data("computer.processes", scope="machine")
        here = next(process for process in data["processes"] if process["pid"] == os.getpid())
        assert here["isOwn"] and here["parent"] == os.getppid() and here["memoryBytes"] > 1_000_000
        assert set(here) == {"pid", "parent", "name", "startedAt", "isOwn", "memoryBytes", "cpuSeconds"}
        few = await road.data("computer.processes", scope="machine", options={"maxResults": 1})
        assert few["truncated"] and len(few["processes"]) == 1
        named = await road.data(
            "computer.processes", scope="machine", options={"nameContains": here["name"][:4].upper()}
        )
        assert os.getpid() in {process["pid"] for process in named["processes"]}
        hidden = await road.data("computer.processes", scope="blind")
        assert os.getpid() not in {process["pid"] for process in hidden["processes"]}
        for scope in ("closed", "other"):
            assert await road.code("computer.processes", scope=scope) == "permission_denied"


async def test_notices_and_the_lock_have_capabilities_of_their_own(tmp_path: Path) -> None:
    """Points 002-012 and 002-020: operations with `notifications:read` and `session:lock`, which nothing else implies."""
    computer = SimulatedComputer()
    for number in range(3):
        computer.world.notices.append(
            Notification(
                app="Mail" if number else "Vault", summary=f"n{number}", body="", received_at="2026-11-16T00:00:00Z"
            )
        )
    scopes = [machine_scope(excludedApplications=["vault"]), computer_scope()]
    async with Road.open(tmp_path, scopes, computer) as road:
        data = await road.data("notification.list", scope="machine", options={"maxResults": 1})
        assert [notice["summary"] for notice in data["notifications"]] == ["n2"] and data["truncated"]
        rest = await road.data("notification.list", scope="machine")
        assert [notice["summary"] for notice in rest["notifications"]] == ["n2", "n1"], "the excluded one is not shown"
        for op in ("notification.list", "screen.lock", "computer.processes"):
            assert await road.code(op, scope="desk") == "permission_denied"
        assert not computer.world.is_locked
        locked = await road.call("screen.lock", scope="machine")
        assert locked["effect"] == "unverifiable" and computer.world.is_locked


async def test_a_lock_asks_first_where_acts_do(tmp_path: Path) -> None:
    computer = SimulatedComputer()
    async with Road.open(tmp_path, [machine_scope(confirm="act")], computer) as road:
        assert await road.code("screen.lock", scope="machine") == "confirm_required"
    assert not computer.world.is_locked


@pytest.mark.skipif(sys.platform != "linux", reason="LinuxProcesses starts real programs")
async def test_a_program_runs_in_one_line() -> None:
    """Points 002-019 and 002-030: `Computer.exec` gives a CompletedCommand; too much output and too much time are told."""
    computer = Computer()
    computer.provide("processes", LinuxProcesses(), backend="linux")
    computer.provide("facts", LinuxFacts("none", {}), backend="linux")
    try:
        done = await computer.exec(["/bin/sh", "-c", "cat; echo problem >&2; exit 3"], stdin=b"fed\n")
        assert (done.exit_code, done.stdout, done.stderr, done.truncated) == (3, "fed\n", "problem\n", False)
        full = await computer.exec(["/bin/sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x"], limit=1000)
        assert full.truncated and len(full.stdout) == 1000
        late = await computer.exec(["/bin/sleep", "30"], timeout_s=0.2)
        assert late.timed_out and late.exit_code == 137
        with pytest.raises(InvalidRequest):
            await computer.exec(["sh", "-c", "true"])
    finally:
        await computer.aclose()


async def test_pointer_and_key_events_are_values() -> None:
    """Point 002-030: PointerEvent and KeyEvent do what the methods do."""
    computer = SimulatedComputer()
    await computer.point(PointerEvent(action="move", at=Point(x=30, y=40)))
    assert await computer.pointer.position() == Point(x=30, y=40)
    for event in (
        PointerEvent(action="click", at=Point(x=5, y=6), button="right"),
        PointerEvent(action="scroll", at=Point(x=5, y=6), dy=2),
        PointerEvent(action="drag", at=Point(x=5, y=6), to=Point(x=50, y=60)),
    ):
        await computer.point(event)
    assert await computer.pointer.position() == Point(x=50, y=60)
    await computer.key(KeyEvent(key="a", modifiers=["ctrl"]))
    await computer.key(KeyEvent(text="abc"))
    for bad in (KeyEvent(), KeyEvent(key="a", text="b")):
        with pytest.raises(InvalidRequest):
            await computer.key(bad)
