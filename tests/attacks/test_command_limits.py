"""One client's commands use up processes, memory and files; another client's commands work meanwhile (B14)."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.local.linux.control_groups import ControlGroups
from computer_linker.model.principal import Principal
from computer_linker.service.info import computer_info
from support.launching import processes_of, without_groups
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio

OTHER = Principal(id="local:other", proof="local_user", session="session-2", connection="connection-2", client="tests")
PYTHON = "/usr/bin/python3"

FORKS = """
import os, signal, time
count = 0
try:
    while count < 4000:
        if os.fork() == 0:
            signal.pause()
        count += 1
except OSError as error:
    print(count, error.errno, flush=True)
time.sleep(60)
"""
HOG = "x = []\nwhile len(x) < 400: x.append(b'x' * 1000000)\nprint('all of it')"


def has_groups() -> bool:
    groups = ControlGroups.found()
    if groups is None:
        return False
    groups.remove_all()
    return True


needs_groups = pytest.mark.skipif(not has_groups(), reason="no control group can be made here")


def scopes(tmp_path: Path, **policy: Any) -> list[dict[str, Any]]:
    common = {"allowedCommands": ["*"], **policy}
    root = tmp_path / "root"
    return [folder_scope(root, "off", sandbox="off", **common), folder_scope(root, "auto", **common)]


async def first_output(road: Road, process: str, scope: str) -> str:
    text = ""
    with anyio.fail_after(60):
        while not text.endswith("\n"):
            read = await road.data("command.read", process, scope=scope, options={"waitSeconds": 20})
            text = "".join(chunk["text"] for chunk in read["chunks"])
    return text


async def honest(road: Road, scope: str, principal: Principal = OTHER) -> None:
    """A command of another client that has to start processes and to use some memory."""
    script = f"({PYTHON} -c 'print(len(bytearray(40000000)))'; echo 1) | wc -l"
    ran = await road.data("command.run", ".", scope=scope, input={"command": ["sh", "-c", script]}, principal=principal)
    assert ran["exitCode"] == 0 and ran["stdout"] == "2\n", ran


@needs_groups
@pytest.mark.parametrize("scope", ["off", "auto"])
async def test_a_fork_bomb_stops_at_its_limit_and_others_work(tmp_path: Path, scope: str) -> None:
    async with Road.open(tmp_path, scopes(tmp_path, maxProcesses=64)) as road:
        command = {"command": [PYTHON, "-c", FORKS]}
        started = await road.data("command.start", ".", scope=scope, input=command)
        count, number = (await first_output(road, started["processId"], scope)).split()
        assert 40 < int(count) < 64 and int(number) == 11
        await honest(road, scope)
        # The same client's next command has a group of its own.
        await honest(road, scope, LOCAL)
        await road.data("command.stop", started["processId"], scope=scope, options={"signal": "kill"})
        read = await road.call("command.read", started["processId"], scope=scope)
        assert any("limit of 64 processes" in warning for warning in read["warnings"]), read


@needs_groups
async def test_all_commands_of_one_client_together_leave_room_for_another(tmp_path: Path) -> None:
    """By default a client's commands have twice what one has: three bombs of one client do not stop another's."""
    async with Road.open(tmp_path, scopes(tmp_path)) as road:
        counts = []
        processes = []
        for _ in range(3):
            started = await road.call("command.start", ".", scope="off", input={"command": [PYTHON, "-c", FORKS]})
            if not started["ok"]:
                assert started["error"]["code"] == "limit_exceeded", started
                break
            processes.append(started["data"]["processId"])
            counts.append(int((await first_output(road, processes[-1], "off")).split()[0]))
        assert counts[0] > 900 and sum(counts) < 2200
        for scope in ("off", "auto"):
            await honest(road, scope)
        for process in processes:
            await road.data("command.stop", process, scope="off", options={"signal": "kill"})
        with anyio.fail_after(20):
            await honest(road, "auto", LOCAL)


@needs_groups
@pytest.mark.parametrize("scope", ["off", "auto"])
async def test_a_memory_hog_ends_alone_and_is_told_why(tmp_path: Path, scope: str) -> None:
    async with Road.open(tmp_path, scopes(tmp_path, maxMemoryMb=96)) as road:
        results: list[dict[str, Any]] = []

        async def hog() -> None:
            results.append(await road.call("command.run", ".", scope=scope, input={"command": [PYTHON, "-c", HOG]}))

        async with anyio.create_task_group() as group:
            group.start_soon(hog)
            await honest(road, scope)
        (told,) = results
        assert told["ok"] and "all of it" not in told["data"]["stdout"], told
        assert (told["data"]["signal"], told["data"]["exitCode"]) == ("SIGKILL", 137)
        assert any("memory limit of 96 MB" in warning for warning in told["warnings"]), told
        await honest(road, scope)


@needs_groups
async def test_what_fills_its_own_folders_is_held_by_the_same_limit(tmp_path: Path) -> None:
    async with Road.open(tmp_path, scopes(tmp_path, maxMemoryMb=96)) as road:
        script = "for place in /tmp /dev/shm /var/tmp $HOME; do head -c 40000000 /dev/zero > $place/full || true; done; echo end"
        told = await road.call("command.run", ".", scope="auto", input={"command": ["sh", "-c", script]})
        assert told["ok"] and told["warnings"], told
        assert any("memory limit of 96 MB" in warning for warning in told["warnings"]), told
        await honest(road, "auto")


async def test_a_commands_own_folders_have_one_budget_and_there_are_no_others(tmp_path: Path) -> None:
    async with Road.open(tmp_path, scopes(tmp_path)) as road:
        script = "stat -c %d / /tmp /var/tmp /dev/shm $HOME; df -k --output=size /tmp | tail -n +2; touch /dev/x; true"
        told = await road.data("command.run", ".", scope="auto", input={"command": ["sh", "-c", script]})
        if not told["boundary"].startswith("bubblewrap"):
            pytest.skip("bubblewrap does not hold here")
        *devices, size = told["stdout"].split()
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        assert len(devices) == 5 and len(set(devices)) == 1, told
        assert int(size) << 10 <= memory // 8 + 4096, told


@pytest.mark.parametrize("scope", ["off", "auto"])
@pytest.mark.parametrize("how", ["written", "sparse"])
async def test_a_file_beyond_the_limit_is_not_written(tmp_path: Path, scope: str, how: str) -> None:
    async with Road.open(tmp_path, scopes(tmp_path, maxFileMb=2)) as road:
        script = {"written": "head -c 5000000 /dev/zero > large", "sparse": "truncate -s 5000000 large"}[how]
        told = await road.call("command.run", ".", scope=scope, input={"command": ["sh", "-c", f"{script}; exit $?"]})
        assert told["data"]["exitCode"] != 0, told
        assert (road.root / "large").stat().st_size <= 2 << 20
        direct = "import os; os.ftruncate(os.open('direct', os.O_CREAT | os.O_WRONLY), 5000000)"
        told = await road.call("command.run", ".", scope=scope, input={"command": [PYTHON, "-c", direct]})
        # Python ignores the signal and gets the error.
        assert told["data"]["exitCode"] == 1 and "File too large" in told["data"]["stderr"], told
        killed = ["truncate", "-s", "5000000", "again"]
        told = await road.call("command.run", ".", scope=scope, input={"command": killed})
        assert told["data"]["exitCode"] != 0 and not (road.root / "again").stat().st_size, told
        await honest(road, scope)


@needs_groups
async def test_groups_go_with_the_service(tmp_path: Path) -> None:
    def of(launcher: int) -> list[str]:
        found = []
        for place, folders, _ in os.walk("/sys/fs/cgroup"):
            found += [f"{place}/{name}" for name in folders if name.startswith(f"computer-linker-{launcher}-")]
        return found

    async with Road.open(tmp_path, scopes(tmp_path)) as road:
        await honest(road, "off")
        launcher = processes_of(road.app.computer)._launcher
        assert launcher is not None and of(launcher.pid)
    assert not of(launcher.pid)


async def test_limits_are_in_the_scopes_policy(tmp_path: Path) -> None:
    async with Road.open(tmp_path, scopes(tmp_path, maxProcesses=64, maxMemoryMb=96)) as road:
        told = await computer_info(road.app, LOCAL, ["scopes"], None)
    text = str(told)
    assert "'maxProcesses': 64" in text and "'maxMemoryMb': 96" in text and "'maxFileMb': 16384" in text


@needs_groups
async def test_a_command_is_in_a_group_that_divides_processor_time(tmp_path: Path) -> None:
    """However many sessions they make: processor time is divided by group (F4)."""
    async with Road.open(tmp_path, scopes(tmp_path)) as road:
        ran = await road.data("command.run", ".", scope="off", input={"command": ["cat", "/proc/self/cgroup"]})
    rows = [line.split(":", 2) for line in ran["stdout"].splitlines()]
    names = {name: path for _, listed, path in rows for name in listed.split(",")}
    if "computer-linker-" not in names.get("cpu", ""):
        pytest.skip("processor time is not divided by control groups here, or by cgroup v2")
    above, client, command = names["cpu"].rsplit("/", 2)
    assert above.rpartition("/")[2].startswith("computer-linker-") and client.startswith("client-") and command


@needs_groups
def test_the_group_of_commands_has_a_quarter_of_the_usual_weight() -> None:
    groups = ControlGroups.found()
    assert groups is not None
    try:
        files = [Path(top, name) for top in groups.tops for name in ("cpu.weight", "cpu.shares")]
        found = [int(file.read_text()) for file in files if file.exists()]
        if not found:
            pytest.skip("there is no controller for processor time here")
        assert found in ([25], [256])
        assert groups.make("client-1")
        inner = [
            int(Path(place, name).read_text())
            for place in groups.places("client-1")
            for name in ("cpu.weight", "cpu.shares")
            if Path(place, name).exists()
        ]
        assert inner in ([100], [1024])
    finally:
        groups.remove_all()


NICE = """
import sys, tempfile
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import anyio
from test_command_limits import run_nice
with tempfile.TemporaryDirectory() as folder:
    anyio.run(run_nice, Path(folder))
print("gone")
"""


async def run_nice(folder: Path) -> None:
    async with Road.open(folder, scopes(folder)) as road:
        for scope, wanted in (("off", 0), ("auto", 5)):
            ran = await road.data("command.run", ".", scope=scope, input={"command": ["nice"]})
            assert int(ran["stdout"]) == os.nice(0) + wanted, (scope, ran)


def test_without_control_groups_a_confined_command_has_a_lower_priority() -> None:
    without_groups(NICE)
