"""Group commit: who waits for the disk, the loop or a thread, and that everyone is told."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from computer_linker.audit.durable import GroupSync
from computer_linker.audit.faults import AuditUnavailable

pytestmark = pytest.mark.anyio


class Disk:
    """A file that is synced in earnest, after so long; tells which threads did it."""

    def __init__(self, path: Path, takes_s: float = 0.0) -> None:
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.takes_s = takes_s
        self.threads: list[str] = []

    def sync(self) -> None:
        self.threads.append(threading.current_thread().name)
        if self.takes_s:
            time.sleep(self.takes_s)  # the slow disk itself
        else:
            os.fstat(self.fd)


@contextmanager
def group(disk: Disk) -> Iterator[GroupSync]:
    sync = GroupSync(disk.sync)
    try:
        yield sync
    finally:
        sync.close()
        os.close(disk.fd)


async def test_a_disk_that_is_quick_is_waited_for_by_the_loop_itself(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "journal")
    with group(disk) as sync:
        for _ in range(200):
            await sync.done()
    assert disk.threads[0] == "audit-sync"  # until it is known
    assert "MainThread" in disk.threads
    assert len(disk.threads) == 200


async def test_a_slow_disk_never_holds_up_the_loop(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "journal", takes_s=0.02)
    with group(disk) as sync:
        for _ in range(20):
            await sync.done()
    assert set(disk.threads) == {"audit-sync"}


async def test_a_stall_sends_the_next_ones_to_the_thread(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "journal")
    with group(disk) as sync:
        for _ in range(200):
            await sync.done()
        disk.takes_s = 0.05
        await sync.done()
        disk.takes_s = 0.0
        before = len(disk.threads)
        await sync.done()
    assert disk.threads[before:] == ["audit-sync"]


async def test_several_calls_share_one_sync_in_the_thread(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "journal")
    with group(disk) as sync:
        for _ in range(200):
            await sync.done()
        before = len(disk.threads)
        await asyncio.gather(*(sync.done() for _ in range(30)))
    assert disk.threads[before:] == ["audit-sync"]


@pytest.mark.parametrize("rounds", [0, 200], ids=["by the thread", "by the loop"])
async def test_whoever_waits_is_told_what_failed(tmp_path: Path, rounds: int) -> None:
    disk = Disk(tmp_path / "journal")
    has_failed = False

    def sync_once() -> None:
        disk.sync()
        if has_failed:
            raise AuditUnavailable("The disk is full.")

    def first() -> None:
        raise OSError("no such disk")

    sync = GroupSync(sync_once)
    try:
        for _ in range(rounds):
            await sync.done()
        with pytest.raises(OSError, match="no such disk"):
            await sync.done(first)
        has_failed = True
        with pytest.raises(AuditUnavailable):
            await sync.done()
        has_failed = False
        await sync.done()
    finally:
        sync.close()
        os.close(disk.fd)
