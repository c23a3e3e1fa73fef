"""Who descends from whom, and which process is at the other end of a TCP connection, with real processes and sockets."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from computer_linker.computer.local.linux.tcp_callers import TcpCallers
from computer_linker.system.lineage import comes_from_below, is_below


@contextmanager
def child(code: str, *arguments: str) -> Iterator[tuple[int, str]]:
    """A running process, and the line it said first."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdin is not None
    try:
        yield process.pid, process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


_GRANDCHILD = """
import os, sys
pid = os.fork()
if pid:
    print(pid, flush=True)
sys.stdin.read()
"""
_CONNECTS = """
import socket, sys
link = socket.socket(socket.AF_UNIX if sys.argv[1] == "unix" else socket.AF_INET)
link.connect(sys.argv[2] if sys.argv[1] == "unix" else ("127.0.0.1", int(sys.argv[2])))
print("connected", flush=True)
sys.stdin.read()
"""


def test_descendants_of_any_depth_are_below_and_others_are_not() -> None:
    with child(_GRANDCHILD) as (pid, said):
        assert is_below(pid, os.getpid()) and is_below(int(said), os.getpid()) and is_below(int(said), pid)
        assert is_below(os.getpid(), pid) is False and is_below(os.getpid(), os.getpid()) is False
        assert is_below(1, os.getpid()) is False
    assert is_below(pid, os.getpid()) is None


def test_the_process_that_connected_decides_and_a_dead_one_is_refused(tmp_path: os.PathLike[str]) -> None:
    path = f"{tmp_path}/s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with child(_CONNECTS, "unix", path) as (pid, _), listener.accept()[0] as link:
            assert comes_from_below(link, os.getpid()) and not comes_from_below(link, pid)
            kept = link.dup()
        assert comes_from_below(kept, pid), "it has ended: nothing can be said of it any more"
        kept.close()


class Commands:
    """A launcher, as far as the callers ask: this process's own children are its commands."""

    launcher_pid = os.getpid()

    def __init__(self, *tunnels: int) -> None:
        self._tunnels = set(tunnels)

    def waiting_pids(self) -> set[int]:
        return set()

    def tunnel_pids(self) -> set[int]:
        return self._tunnels


def verdict(callers: TcpCallers, link: socket.socket) -> bool:
    here, there = link.getsockname(), link.getpeername()
    found = callers.check_fast(here, there)
    return callers.check_by_scan([(here, there)])[0] is True if found is None else found


def test_a_commands_connection_is_refused_however_often_and_anothers_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        callers = TcpCallers(Commands())
        with child(_CONNECTS, "tcp", port) as (pid, _):
            link = listener.accept()[0]
            assert [verdict(callers, link) for _ in range(2)] == [False, False]
            assert verdict(TcpCallers(Commands(pid), for_tunnel=True), link)
            assert not verdict(TcpCallers(Commands(pid)), link), "the tunnel's program too, at any other port"
            with socket.create_connection(listener.getsockname()), listener.accept()[0] as ours:
                assert [verdict(callers, ours) for _ in range(2)] == [True, True]
        assert not verdict(callers, link), "closed by now"
        link.close()


def test_a_far_end_that_nobody_holds_is_refused() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        child("import sys; print(1, flush=True); sys.stdin.read()"),
    ):
        callers = TcpCallers(Commands())
        gone = socket.create_connection(listener.getsockname())
        link = listener.accept()[0]
        gone.close()
        assert callers.check_fast(link.getsockname(), link.getpeername()) is False
        link.close()
        reset = socket.create_connection(listener.getsockname())
        here, there = reset.getpeername(), reset.getsockname()
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reset.close()
        listener.accept()[0].close()
        assert callers.check_fast(here, there) is False and callers.check_fast(here, None) is False
        flying, kept = socket.socketpair()
        sent = socket.create_connection(listener.getsockname())
        link = listener.accept()[0]
        socket.send_fds(flying, [b"x"], [sent.fileno()])
        sent.close()
        assert not verdict(callers, link), "on its way, in no process"
        for one in (flying, kept, link):
            one.close()


def test_a_machine_elsewhere_is_not_looked_for_here() -> None:
    with child("import sys; print(1, flush=True); sys.stdin.read()"):
        assert TcpCallers(Commands()).check_fast(("203.0.113.1", 80), ("203.0.113.2", 4000)) is True
