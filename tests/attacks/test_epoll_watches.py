"""The kernel gives the service no epoll watch, because a command took all of the user's: the service goes on."""

import asyncio
import ctypes
import errno
import os
import select
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from computer_linker.system import event_loop
from support.commands import command
from support.lines import stdio
from support.service import TOKEN, serving

pytestmark = pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="the filter has this processor's number of a call"
)
T = TypeVar("T")
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22
EPOLL_CTL, ADD = 233, 1
FILTER = (
    *((0x20, 0, 0, 0), (0x15, 0, 3, EPOLL_CTL), (0x20, 0, 0, 24), (0x15, 0, 1, ADD)),
    *((0x06, 0, 0, 0x00050000 | errno.ENOSPC), (0x06, 0, 0, 0x7FFF0000)),
)
"""A seccomp program: epoll_ctl(EPOLL_CTL_ADD) fails as it does when the user has no watches left."""


def take_watches() -> None:
    """From now on this thread, and what it starts, is given no further watch."""

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))

    libc = ctypes.CDLL(None, use_errno=True)
    code = Filter(len(FILTER), b"".join(struct.pack("HBBI", *line) for line in FILTER))
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(code), 0, 0) == 0
    with select.epoll() as epoll, pytest.raises(OSError) as refused:
        epoll.register(0)
    assert refused.value.errno == errno.ENOSPC


def in_a_thread(work: Callable[[], T]) -> T:
    """A filter cannot be taken off again, and ends with its thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_connections_go_on_and_new_ones_are_served(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
        writer.close()

    async def asked(link: tuple[asyncio.StreamReader, asyncio.StreamWriter], size: int) -> bool:
        line = b"x" * size + b"\n"
        link[1].write(line)
        return await link[0].readline() == line

    async def main() -> list[bool]:
        async with await asyncio.start_unix_server(echo, path, limit=1 << 24):
            before = await asyncio.open_unix_connection(path, limit=1 << 24)
            answers = [await asked(before, 10)]
            take_watches()
            after = [await asyncio.open_unix_connection(path, limit=1 << 24) for _ in range(3)]
            # More than a socket's buffer, so that both sides wait until they can write.
            for link in (before, *after, before):
                answers.append(await asked(link, 3_000_000))
            # A descriptor's number is used again.
            after[0][1].close()
            await after[0][1].wait_closed()
            again = await asyncio.open_unix_connection(path, limit=1 << 24)
            answers.append(await asked(again, 100))
            for _, writer in (before, *after[1:], again):
                writer.close()
                await writer.wait_closed()
            return answers

    assert in_a_thread(lambda: event_loop.run(main())) == [True] * 7


def test_a_service_without_any_watch_serves_every_client(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(take_watches).result()
            service = pool.submit(stack.enter_context, serving(tmp_path, token=TOKEN, env={"LANG": "C.UTF-8"})).result()
        (service.root / "notes.txt").write_text("kept")
        call = {"name": "computer_operation", "arguments": {"scope": "app", "op": "file.read", "target": "notes.txt"}}
        links = [service.http() for _ in range(3)]
        for link in links:
            assert "kept" in str(link.modern("tools/call", call))
            link.close()
        with stdio(service.home) as lines:
            assert "kept" in str(lines.ask("tools/call", call))
        listed = command(service.home, "status")
        assert listed.returncode == 0, listed.stderr
        assert service.process.poll() is None and "no further epoll watches" in service.log
        assert service.stop() == 0
