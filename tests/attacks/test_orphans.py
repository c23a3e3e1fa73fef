"""Nothing outlives its command, whatever it did to be taken for another's (B15)."""

import secrets
from pathlib import Path
from typing import Any

import anyio
import pytest

from attacks.orphan_tricks import TRICKS, is_killed, left, program
from computer_linker.computer.facets.processes import Launch
from computer_linker.computer.local.linux.control_groups import ControlGroups
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.launching import processes, processes_of, without_groups
from support.road import Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio
BOUNDARIES = ["bubblewrap", "landlock", "none"]


async def leave_one(tmp_path: Path, kind: Any, trick: str, *, forges: bool = True) -> None:
    """Run the trick beside another command, and see that nothing of it is left while the other goes on."""
    root = tmp_path / "root"
    scopes = [folder_scope(root, allowedCommands=["*"], sandbox="off" if kind == "none" else "required")]
    async with Road.open(tmp_path, scopes) as road:
        if kind != "none":
            sandbox = Sandbox(road.app.computer, road.home, kinds=(kind,))
            if not (await sandbox.probe()).holds:
                pytest.skip(f"{kind} cannot be had here")
            road.app.services.provide(Sandbox, sandbox)
        other = secrets.token_hex(8)
        sleeper = ["/usr/bin/python3", "-S", "-c", "import time; time.sleep(120)", other]
        started = await road.data("command.start", ".", input={"command": sleeper})
        token = secrets.token_hex(8)
        argv = program(trick, token, forges=forges)
        ran = await road.data("command.run", ".", input={"command": argv}, options={"timeoutSeconds": 50})
        assert ran["exitCode"] == 0, ran
        await until(lambda: not left(token))
        read = await road.data("command.read", started["processId"])
        assert read["status"] == "running" and left(other)


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("kind", BOUNDARIES)
async def test_no_orphan_outlives_its_command(tmp_path: Path, kind: str, trick: str) -> None:
    await leave_one(tmp_path, kind, trick)


async def test_an_orphan_of_a_running_command_lives_on_with_it(tmp_path: Path) -> None:
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="off")]
    async with Road.open(tmp_path, scopes) as road:
        token = secrets.token_hex(8)
        argv = program("double fork", token)
        argv[3] += "\nprint('left', flush=True)\ntime.sleep(60)"
        started = await road.data("command.start", ".", input={"command": argv})
        chunks: list[Any] = []
        with anyio.fail_after(20):
            while not chunks:
                read = await road.data("command.read", started["processId"], options={"waitSeconds": 5})
                chunks = read["chunks"]
        for _ in range(5):
            assert (await road.data("command.run", ".", input={"command": ["true"]}))["exitCode"] == 0
        assert len(left(token)) >= 2
        await road.data("command.stop", started["processId"])
        await until(lambda: not left(token))


async def test_what_a_killed_launcher_left_is_ended_by_the_next_one(tmp_path: Path) -> None:
    groups = ControlGroups.found()
    if groups is None:
        pytest.skip("no control group can be made here")
    groups.remove_all()
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="off")]
    async with Road.open(tmp_path, scopes) as road:
        token = secrets.token_hex(8)
        argv = program("cleared environment", token)
        argv[3] += "\nprint('left', flush=True)\ntime.sleep(60)"
        started = await road.data("command.start", ".", input={"command": argv})
        with anyio.fail_after(30):
            while not (await road.data("command.read", started["processId"], options={"waitSeconds": 5}))["chunks"]:
                pass
        launcher = processes_of(road.app.computer)._launcher
        assert launcher is not None
        launcher.kill()
        await until(lambda: not left(token))


WITHOUT = """
import sys, tempfile
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import anyio
from test_orphans import leave_one
from computer_linker.computer.local.linux.control_groups import ControlGroups
assert ControlGroups.found() is None
with tempfile.TemporaryDirectory() as folder:
    anyio.run(lambda: leave_one(Path(folder), sys.argv[3], sys.argv[4], forges=sys.argv[3] != "none"))
print("gone")
"""


AT_ONCE = """
import sys
sys.path[:0] = sys.argv[1:3]
import anyio
from test_orphans import end_one
anyio.run(end_one)
print("gone")
"""


async def end_one() -> None:
    """Leave a process in a session of its own, and look at it in the moment when the command's end is reported."""
    token = secrets.token_hex(8)
    async with processes() as facet:
        for _ in range(5):
            child = await facet.spawn(Launch(tuple(program("double fork", token)), {"PATH": "/usr/bin:/bin"}))
            seen: list[bool] = []
            child.when_ended(lambda _: seen.extend(is_killed(pid) for pid in left(token)))  # noqa: B023  # called in this turn
            child.go()
            with anyio.fail_after(60):
                await child.wait()
            assert all(seen), seen


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("kind", BOUNDARIES)
def test_the_same_without_control_groups(kind: str, trick: str) -> None:
    """The numbers of other commands excepted without a boundary: the superuser can set any (F15)."""
    without_groups(WITHOUT, kind, trick)


def test_without_control_groups_what_is_left_is_killed_before_the_end_is_reported() -> None:
    """The service removes the command's folders when it learns of the end (F10)."""
    without_groups(AT_ONCE)
