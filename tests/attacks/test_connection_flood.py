"""A command that floods a port with connections does not make an honest one wait for a look at each of them."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from computer_linker.computer.base import Computer
from computer_linker.transports.tcp_entrance import TcpEntrance

pytestmark = pytest.mark.anyio

COUNT = 300
_FLOOD = """
import os, socket, sys
for _ in range(3):
    if os.fork() == 0:
        links = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]) // 3)]
        break
sys.stdin.read()
"""


class Launcher:
    """What the entrance asks of the launcher: everything below `launcher_pid` is a command."""

    def __init__(self, pid: int) -> None:
        self.launcher_pid = pid

    def waiting_pids(self) -> set[int]:
        return set()

    def tunnel_pids(self) -> set[int]:
        return set()


@pytest.fixture
def flood() -> Iterator[tuple[TcpEntrance, list[socket.socket], socket.socket]]:
    """An entrance, the accepted connections of a command's processes, and one of this process, which is no command."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1024))
        port = listener.getsockname()[1]
        argv = [sys.executable, "-I", "-c", _FLOOD, str(port), str(COUNT)]
        process = stack.enter_context(subprocess.Popen(argv, stdin=subprocess.PIPE))
        listener.settimeout(30)
        flooding = [stack.enter_context(listener.accept()[0]) for _ in range(COUNT)]
        stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        honest = stack.enter_context(listener.accept()[0])
        computer = Computer()
        computer.provide("processes", Launcher(process.pid), backend="launcher")
        notes: Any = None
        yield TcpEntrance(computer, notes), flooding, honest
        assert process.stdin is not None
        process.stdin.close()


async def verdict(entrance: TcpEntrance, link: socket.socket) -> bool:
    here, there = link.getsockname(), link.getpeername()
    found = entrance.check_fast(here, there)
    return await entrance.check_by_scan(here, there) if found is None else found


async def test_one_look_answers_a_whole_flood(flood: tuple[TcpEntrance, list[socket.socket], socket.socket]) -> None:
    entrance, flooding, honest = flood
    began = time.process_time()
    tasks = [asyncio.ensure_future(verdict(entrance, link)) for link in flooding]
    await asyncio.sleep(0)  # the flood comes first
    assert await verdict(entrance, honest) is True
    assert await asyncio.gather(*tasks) == [False] * COUNT
    # Work, not time: a look for each of them took 0.9 s of it.
    assert time.process_time() - began < 0.4


async def test_a_connection_that_nothing_holds_is_refused_and_delays_none(
    flood: tuple[TcpEntrance, list[socket.socket], socket.socket],
) -> None:
    entrance, _flooding, honest = flood
    closed = (*honest.getpeername()[:1], 1)
    gone = asyncio.ensure_future(entrance.check_by_scan(honest.getsockname(), closed))
    assert await entrance.check_by_scan(honest.getsockname(), honest.getpeername()) is True
    assert await gone is False
