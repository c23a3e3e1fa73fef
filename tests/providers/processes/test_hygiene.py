"""Nothing is left behind: no zombie, no orphan, no descriptor, no memory; not even when the service is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.children import is_of_test_support
from support.launching import processes_of
from support.road import Road, folder_scope
from support.waiting import until, until_awaited

pytestmark = pytest.mark.anyio

RUNS = int(os.environ.get("COMPUTER_LINKER_SOAK_RUNS", "150"))


def children_of(road: Road) -> dict[str, str]:
    """The processes of the service and of its launcher, by their number, with the state each is in."""
    processes = processes_of(road.app.computer)
    assert processes._launcher is not None
    parents = {str(os.getpid()), str(processes._launcher.pid)}
    found: dict[str, str] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text(errors="replace").rpartition(")")
            state, parent = rest.split()[:2]
        except OSError:
            continue
        # An anchor stays with its control group, for the next command in it; how many there are is bounded.
        is_anchor = name.endswith("(linker-anchor")
        if parent in parents and not is_anchor and not is_of_test_support(int(path.parent.name)):
            found[path.parent.name] = state
    return found


def descriptors(besides: Path) -> list[str]:
    """What every open descriptor leads to, those of the history excepted: it opens its index after so many records."""
    found: list[str] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            # The one this list was read through.
            continue
    return sorted(target for target in found if not target.startswith(str(besides)))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("sandbox", ["off", "auto"])
async def test_many_runs_leave_nothing(tmp_path: Path, sandbox: str) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox=sandbox)]) as road:
        (road.root / ".git").mkdir()

        async def some(count: int) -> None:
            for _ in range(count):
                assert (await road.data("command.run", ".", input={"command": ["true"]}))["exitCode"] == 0

        async def burst(count: int) -> None:
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(some, count // 4)

        await burst(20)
        history = road.home / "audit"
        before, memory = descriptors(history), resident()
        await burst(RUNS)
        after = descriptors(history)
        assert len(after) <= len(before) + 2, sorted(set(after) - set(before))

        def is_quiet() -> bool:
            # The launcher, and one child each that waits for the next order of the caller and of the service itself;
            # where the user has a range of ids, each with the process that writes its map of them.
            left = children_of(road)
            return len(left) <= 5 and "Z" not in left.values()

        await until(is_quiet)
        assert resident() - memory < 16_000_000
        assert [path.name for path in road.root.iterdir()] == [".git"]


async def test_a_flood_of_output_keeps_the_memory_small(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox="off")
    async with Road.open(tmp_path, [scope]) as road:
        flood = {"command": ["head", "-c", "200000000", "/dev/zero"]}
        await road.data("command.run", ".", input={"command": ["head", "-c", "5000000", "/dev/zero"]})
        memory = resident()
        ran = await road.data("command.run", ".", input=flood)
        assert ran["truncated"] and resident() - memory < 16_000_000


SERVICE = """
import sys, anyio
from pathlib import Path
from typing import Any
sys.path.insert(0, sys.argv[2])
from support.road import Road, folder_scope
async def main():
    tmp = Path(sys.argv[1])
    scopes = [folder_scope(tmp / "root", name, allowedCommands=["*"], sandbox=mode) for name, mode in
              (("app", "auto"), ("bare", "off"))]
    async with Road.open(tmp, scopes) as road:
        for scope in ("app", "bare"):
            script = "setsid -f sleep 93.5; sleep 93.5 & sleep 93.5"
            await road.data("command.start", ".", scope=scope, input={"command": ["sh", "-c", script]})
        async with anyio.create_task_group() as group:
            for scope in ("app", "bare"):
                group.start_soon(lambda scope=scope: road.call(
                    "command.run", ".", scope=scope, input={"command": ["sh", "-c", "touch $0; sleep 93.5", scope]}))
            with anyio.fail_after(20):
                while not all((road.root / name).exists() for name in ("app", "bare")):
                    await anyio.sleep(0.01)
            print("up", flush=True)
            await anyio.sleep_forever()
anyio.run(main)
"""


async def test_a_killed_service_takes_everything_along_and_the_next_one_says_lost(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[2])
    service = subprocess.Popen([sys.executable, "-c", SERVICE, str(tmp_path), tests], stdout=subprocess.PIPE)
    try:
        assert service.stdout is not None
        assert await anyio.to_thread.run_sync(service.stdout.readline) == b"up\n"
        assert sleepers() >= 4
    finally:
        service.send_signal(signal.SIGKILL)
        service.communicate()
    await until(lambda: not sleepers())
    scopes = [folder_scope(tmp_path / "root", name, allowedCommands=["*"]) for name in ("app", "bare")]
    async with Road.open(tmp_path, scopes) as road:
        for scope in ("app", "bare"):
            (entry,) = (await road.data("command.list", scope=scope))["processes"]
            assert (entry["status"], entry["exitCode"], entry["processes"]) == ("lost", None, None)


async def test_a_killed_launcher_ends_its_commands_and_is_replaced(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"])]) as road:
        started = await road.data("command.start", ".", input={"command": ["sleep", "92.5"]})
        launcher = road.app.computer.processes._launcher  # type: ignore[attr-defined]
        launcher.kill()

        async def has_ended() -> bool:
            return bool((await road.data("command.read", started["processId"]))["status"] != "running")

        await until_awaited(has_ended)
        assert (await road.data("command.run", ".", input={"command": "echo again"}))["stdout"] == "again\n"


def sleepers() -> int:
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += path.read_bytes().endswith(b"sleep\x0093.5\0")
        except OSError:
            continue
    return count


CROWD = """
import os, signal, time
count = 0
try:
    while count < 4000:
        if os.fork() == 0:
            signal.pause()
        count += 1
except OSError:
    pass
print(count, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("sandbox", ["off", "auto"])
async def test_a_crowd_of_processes_is_bounded_and_goes_with_its_command(tmp_path: Path, sandbox: str) -> None:
    if not Path("/sys/fs/cgroup/pids").is_dir() and not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        pytest.skip("there is no control group for processes here")
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], sandbox=sandbox)
    async with Road.open(tmp_path, [scope]) as road:
        argv = ["/usr/bin/python3", "-c", CROWD]
        started = await road.data("command.start", ".", input={"command": argv})
        read: dict[str, Any] = {"chunks": []}
        with anyio.fail_after(60):
            while not read["chunks"]:
                read = await road.data("command.read", started["processId"], options={"waitSeconds": 20})
        assert int(read["chunks"][0]["text"]) < 2100
        if sandbox == "off":
            # The sandbox program would have to fork, and cannot: what it needs is not spared.
            ran = await road.data("command.run", ".", input={"command": "echo meanwhile"})
            assert ran["stdout"] == "meanwhile\n"
        with anyio.fail_after(30):
            assert (await road.data("command.stop", started["processId"], options={"signal": "kill"}))[
                "status"
            ] == "stopped"
            assert (await road.data("command.run", ".", input={"command": "echo alive"}))["stdout"] == "alive\n"
