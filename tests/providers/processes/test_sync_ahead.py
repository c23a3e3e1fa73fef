"""A process that makes the intent durable itself before it becomes its program, while the command is still prepared."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from computer_linker.audit.store import AuditStore
from computer_linker.computer.facets.processes import Launch
from computer_linker.computer.local.linux.processes import LinuxProcesses
from computer_linker.errors import ExecutionFailed
from support.launching import processes_of, waiting_child
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def processes() -> AsyncIterator[LinuxProcesses]:
    """With a child that waits for work."""
    processes = LinuxProcesses()
    child = await processes.spawn(Launch(("/usr/bin/true",), {}))
    child.go()
    await child.wait()
    for fd in (child.stdout, child.stderr):
        assert fd is not None
        os.close(fd)
    await waiting_child(processes)
    yield processes
    await processes.aclose()


def touching(path: Path, ahead: object) -> Launch:
    return Launch(("/usr/bin/touch", str(path)), {}, ahead=ahead)  # type: ignore[arg-type]  # what sync_ahead gave


async def test_the_program_runs_after_its_file_was_synced(processes: LinuxProcesses, tmp_path: Path) -> None:
    with (tmp_path / "journal").open("ab") as file:
        file.write(b"an intent\n")
        file.flush()
        ahead = processes.sync_ahead(file.fileno())
    assert ahead is not None
    child = await processes.spawn(touching(tmp_path / "made", ahead))
    child.go()
    with anyio.fail_after(20):
        assert (await child.wait()).exit_code == 0
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("is_late", [False, True], ids=["order at once", "order after it failed"])
async def test_nothing_runs_when_the_file_cannot_be_synced(
    processes: LinuxProcesses, tmp_path: Path, is_late: bool
) -> None:
    read, write = os.pipe()  # a pipe is not on any disk: the kernel refuses to sync it
    ahead = processes.sync_ahead(write)
    assert ahead is not None
    if is_late:
        with anyio.fail_after(20):
            while ahead.ended is None:
                await anyio.sleep(0.005)
        with pytest.raises(ExecutionFailed, match="record in the history"):
            await processes.spawn(touching(tmp_path / "made", ahead))
    else:
        child = await processes.spawn(touching(tmp_path / "made", ahead))
        child.go()
        with anyio.fail_after(20):
            ended = await child.wait()
        assert ended.exit_code == 127
        assert "record in the history" in (ended.reason or "")
    os.close(read)
    os.close(write)
    assert not (tmp_path / "made").exists()
    child = await processes.spawn(Launch(("/usr/bin/touch", str(tmp_path / "next")), {}))
    child.go()
    await child.wait()
    assert (tmp_path / "next").exists()


async def test_one_that_is_given_back_takes_the_next_order(processes: LinuxProcesses, tmp_path: Path) -> None:
    pid = await waiting_child(processes)
    with (tmp_path / "journal").open("ab") as file:
        for _ in range(3):
            ahead = processes.sync_ahead(file.fileno())
            assert ahead is not None
            ahead.give_back()
    child = await processes.spawn(touching(tmp_path / "made", None))
    child.go()
    await child.wait()
    assert child.pid == pid
    assert (tmp_path / "made").exists()


async def test_nobody_is_set_to_work_when_nobody_waits() -> None:
    processes = LinuxProcesses()
    assert processes.sync_ahead(0) is None


async def test_one_that_dies_at_work_runs_nothing(processes: LinuxProcesses, tmp_path: Path) -> None:
    with (tmp_path / "journal").open("ab") as file:
        ahead = processes.sync_ahead(file.fileno())
    assert ahead is not None
    os.kill(ahead.pid, 9)
    with anyio.fail_after(20):
        while ahead.ended is None:
            await anyio.sleep(0.005)
    with pytest.raises(ExecutionFailed):
        await processes.spawn(touching(tmp_path / "made", ahead))
    ahead.give_back()
    assert not processes._ahead
    assert not (tmp_path / "made").exists()


async def test_the_history_knows_that_the_intent_is_durable(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", sandbox="off", allowedCommands=["*"])
    (tmp_path / "root").mkdir()
    async with Road.open(tmp_path, [scope]) as road:
        await road.data("command.run", ".", input={"command": ["true"]})
        processes = processes_of(road.app.computer)
        await waiting_child(processes)
        journal = road.app.services.use(AuditStore).journal
        before = journal.head.number
        await road.data("command.run", ".", input={"command": ["true"]})
        assert journal.head.synced == before + 1
        assert journal.head.number == before + 2


async def test_a_refused_command_leaves_the_process_to_the_next(tmp_path: Path) -> None:
    scope = folder_scope(tmp_path / "root", sandbox="off", allowedCommands=["true"])
    (tmp_path / "root").mkdir()
    async with Road.open(tmp_path, [scope]) as road:
        await road.data("command.run", ".", input={"command": ["true"]})
        processes = processes_of(road.app.computer)
        pid = await waiting_child(processes)
        refused = await road.call("command.run", ".", input={"command": ["touch", "made"]})
        assert refused["error"]["code"] == "permission_denied"
        assert not (tmp_path / "root" / "made").exists()
        assert [ready.pid for ready in processes._ready] == [pid]
        assert not processes._ahead
