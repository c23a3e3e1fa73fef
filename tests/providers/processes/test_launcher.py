"""What a program finds when the launcher has made way for it, and what keeps the launcher ready for the next one."""

import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from computer_linker.computer.facets.processes import Launch
from computer_linker.computer.local.linux.processes import LinuxProcesses
from computer_linker.providers.processes.streams import collect
from support.launching import waiting_child
from support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def processes() -> AsyncIterator[LinuxProcesses]:
    processes = LinuxProcesses()
    yield processes
    await processes.aclose()


async def output(processes: LinuxProcesses, *argv: str) -> str:
    child = await processes.spawn(Launch(argv, {"PATH": "/usr/bin:/bin"}))
    child.go()
    with anyio.fail_after(20):
        out, _, _ = await collect(child, 100_000)
    return out.decode()


async def test_signals_are_as_a_program_expects_them(processes: LinuxProcesses) -> None:
    status = await output(processes, "/usr/bin/cat", "/proc/self/status")
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(lines["SigBlk"], 16) == int(lines["SigCgt"], 16) == 0
    # 32 and 33 are the C library's own, wherever a program was started from.
    assert int(lines["SigIgn"], 16) & ~(0b11 << 31) == 0
    assert lines["NoNewPrivs"] == "1"


async def test_no_descriptor_of_the_launcher_reaches_a_program(processes: LinuxProcesses) -> None:
    assert (await output(processes, "/usr/bin/ls", "/proc/self/fd")).split() == ["0", "1", "2", "3"]


async def test_a_program_leads_its_own_session_and_dies_with_the_launcher(processes: LinuxProcesses) -> None:
    fields = (await output(processes, "/usr/bin/cat", "/proc/self/stat")).split()
    assert fields[0] == fields[4] == fields[5]
    child = await processes.spawn(Launch(("/usr/bin/sleep", "60"), {}))
    child.go()
    launcher = processes._launcher
    assert launcher is not None
    launcher.kill()
    with anyio.fail_after(20):
        ended = await child.wait()
    assert ended.signal == "SIGKILL"


async def test_the_next_child_waits_before_it_is_asked_for(processes: LinuxProcesses) -> None:
    await output(processes, "/usr/bin/true")
    waiting = await waiting_child(processes)
    child = await processes.spawn(Launch(("/usr/bin/true",), {}))
    assert child.pid == waiting
    child.go()
    await child.wait()


async def test_a_waiting_child_that_is_ended_is_replaced(processes: LinuxProcesses) -> None:
    await output(processes, "/usr/bin/true")
    first = await waiting_child(processes)
    os.kill(first, signal.SIGKILL)
    await until(lambda: processes._ready and processes._ready[0].pid != first)
    assert await output(processes, "/usr/bin/echo", "here") == "here\n"


async def test_a_command_that_never_starts_runs_nothing(processes: LinuxProcesses, tmp_path: Path) -> None:
    child = await processes.spawn(Launch(("/usr/bin/touch", str(tmp_path / "marker")), {}))
    child.kill()
    with anyio.fail_after(20):
        await child.wait()
    assert not (tmp_path / "marker").exists()


async def test_a_command_that_is_killed_at_once_is_gone(processes: LinuxProcesses) -> None:
    """Even before the child has a group of its own."""
    for _ in range(20):
        child = await processes.spawn(Launch(("/usr/bin/sleep", "60"), {}))
        child.kill()
        with anyio.fail_after(20):
            assert (await child.wait()).signal == "SIGKILL"


async def test_many_started_at_once_all_run(processes: LinuxProcesses) -> None:
    told: list[str] = []

    async def one(number: int) -> None:
        told.append(await output(processes, "/usr/bin/echo", str(number)))

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(one, number)
    assert sorted(told) == sorted(f"{number}\n" for number in range(40))
    await waiting_child(processes)
    assert len(processes._ready) + processes._forking.total() <= 2


async def test_the_launcher_imports_next_to_nothing(processes: LinuxProcesses) -> None:
    """Each page it holds makes every fork and every start slower; see decision 52."""
    await output(processes, "/usr/bin/true")
    launcher = processes._launcher
    assert launcher is not None
    lines = Path(f"/proc/{launcher.pid}/status").read_text().splitlines()
    anonymous = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
    assert anonymous < 5_000


async def test_only_groups_of_launchers_that_are_gone_are_cleared_away(processes: LinuxProcesses) -> None:
    """What is in a cleared group is killed, so one with another kind of name, or of a launcher that lives, stays."""
    own = (await output(processes, "/usr/bin/cat", "/proc/self/cgroup")).splitlines()
    place = next((line.split(":", 2)[2] for line in own if ":pids:" in line), "")
    if "computer-linker-" not in place:
        pytest.skip("there is no hierarchy of its own for processes here")
    above = f"/sys/fs/cgroup/pids{place.partition('/computer-linker-')[0]}"
    gone = subprocess.Popen(["/usr/bin/true"])
    gone.wait()
    names = [f"computer-linker-{os.getpid()}", f"computer-linker-{gone.pid}-77", "computer-linker-other"]
    for name in names:
        Path(above, name).mkdir()
    sleepers = [subprocess.Popen(["/usr/bin/sleep", "60"]) for _ in names]
    try:
        for name, sleeper in zip(names, sleepers, strict=True):
            Path(above, name, "cgroup.procs").write_text(str(sleeper.pid))
        second = LinuxProcesses()
        await output(second, "/usr/bin/true")
        await second.aclose()
        assert sleepers[1].wait(10) == -signal.SIGKILL and not Path(above, names[1]).exists()
        assert sleepers[0].poll() is None and sleepers[2].poll() is None
        assert await output(processes, "/usr/bin/echo", "here") == "here\n"
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                Path(above, name).rmdir()
