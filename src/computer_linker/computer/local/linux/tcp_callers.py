"""Which process is at the other end of a TCP connection from this machine: a command's never gets in.

A connection counts as another program's only when one that no command started is seen to hold its far end. A far end that no
process holds (closed, or on its way inside another socket) may be a command's, and is refused.
"""

import os
import socket
import struct
import threading
import time
from collections import OrderedDict
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from computer_linker.computer.local.linux.lineage import is_below
from computer_linker.computer.local.linux.proc import started_at
from computer_linker.computer.local.linux.proc_files import children

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
_LISTENS = 10
_TRIES, _PAUSE_S = 3, 0.02
_ANSWER_S = 1.0
_MOST_REMEMBERED = 8
Address = tuple[Any, ...]
"""A host and a port first, as getsockname gives them."""


class Commands(Protocol):
    """What started commands, as far as it is needed here."""

    @property
    def launcher_pid(self) -> int | None: ...

    def waiting_pids(self) -> set[int]: ...

    def tunnel_pids(self) -> set[int]: ...


class TcpCallers:
    """Distinguishes a command's connections from others. Remembers a few programs, since a client connects again and again."""

    def __init__(self, commands: Commands, *, for_tunnel: bool = False) -> None:
        """`for_tunnel`: at the tunnel's own port, where its program, which the launcher started too, is to come in."""
        self._commands = commands
        self._for_tunnel = for_tunnel
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int, int], tuple[bool, str]] = OrderedDict()
        """Programs by pid and start: whether they may come in, which is for life, and the last descriptor."""

    @property
    def is_needed(self) -> bool:
        """False while no command has been started."""
        return self._commands.launcher_pid is not None

    def at_once(self, here: Address, there: Address | None) -> bool | None:
        """Whether this connection may come in; None when that needs `after_a_look`. For the thread that starts commands."""
        launcher = self._commands.launcher_pid
        if launcher is None:
            return True
        # In this order: what is still held after no command was left is not held by one.
        has_commands = not self._commands.waiting_pids().issuperset(children(launcher))
        if not _tells():
            return not has_commands
        if there is None:
            # It was reset: a command may send a request so and be gone.
            return False
        try:
            found = _far_end(here, there)
        except OSError:
            return not has_commands
        if found is None:
            return not _is_of_this_machine(there[0])
        if found.inode == 0:
            return False
        if not has_commands or os.geteuid() not in (0, found.uid):
            return True
        return self._verdict_on_known(found.inode)

    def after_a_look(self, here: Address, there: Address) -> bool:
        """The same by looking through the open files of every process; for a worker thread."""
        launcher = self._commands.launcher_pid
        tunnels = self._commands.tunnel_pids() if self._for_tunnel else set[int]()
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE_S)
            try:
                found = _far_end(here, there)
            except OSError:
                return False
            if found is None or found.inode == 0 or launcher is None:
                return False
            holder = _holder(found.inode)
            below = _is_command(holder[0], launcher, tunnels) if holder is not None else None
            if holder is not None and below is not None and started_at(holder[0]) == holder[1]:
                self._remember(holder[:2], (not below, holder[2]))
                return not below
        return False

    def _verdict_on_known(self, inode: int) -> bool | None:
        with self._lock:
            remembered = list(self._known.items())
        for known, (may_enter, last_fd) in remembered:
            fd = _held_as(known[0], inode, last_fd)
            if fd is not None and started_at(known[0]) == known[1]:
                self._remember(known, (may_enter, fd))
                return may_enter
        return None

    def _remember(self, known: tuple[int, int], seen: tuple[bool, str]) -> None:
        with self._lock:
            self._known[known] = seen
            self._known.move_to_end(known, last=False)
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem()


def _is_command(pid: int, launcher: int, tunnels: set[int]) -> bool | None:
    below = is_below(pid, launcher)
    if below and (pid in tunnels or any(is_below(pid, tunnel) for tunnel in tunnels)):
        return False
    return below


class _Socket(NamedTuple):
    """Who made a socket, and its number; 0 when no process holds it any more."""

    uid: int
    inode: int


def _far_end(here: Address, there: Address) -> _Socket | None:
    """The socket at `there` that is connected to `here`; None when this machine has none.

    Raises OSError where the kernel does not answer.
    """
    family = _family(here[0])
    own, far = (_packed(family, address[0]) for address in (here, there))
    question = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
    question += struct.pack("!HH16s16s", there[1], here[1], far, own) + struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as diag:
        # The kernel answers before `send` returns; an answer that it could not keep must not hold the service up.
        diag.settimeout(_ANSWER_S)
        diag.send(struct.pack("=IHHII", 16 + len(question), _BY_FAMILY, _REQUEST, 1, 0) + question)
        answer = diag.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] != _BY_FAMILY or answer[17] == _LISTENS:
        return None
    return _Socket(*struct.unpack_from("=II", answer, 80))


@lru_cache(maxsize=1)
def _tells() -> bool:
    """Whether this kernel reports TCP sockets (sock_diag)."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.create_connection(listener.getsockname()) as link,
        ):
            return _far_end(link.getpeername(), link.getsockname()) is not None
    except OSError:
        return False


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _packed(family: int, address: str) -> bytes:
    return socket.inet_pton(family, address.partition("%")[0]).ljust(16, b"\0")


def _is_of_this_machine(address: str) -> bool:
    """Whether the address is one of our own, as the kernel says."""
    with socket.socket(_family(address), socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _holder(inode: int) -> tuple[int, int, str] | None:
    """A process that has the socket open, when it started, and as which descriptor."""
    # The newest first: short-lived programs are where new connections come from.
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True):  # noqa: PTH208
        fd = _held_as(pid, inode)
        if fd is not None:
            start = started_at(pid)
            if start is not None and _held_as(pid, inode, fd) is not None:
                return pid, start, fd
    return None


def _held_as(pid: int, inode: int, first: str | None = None) -> str | None:
    """The descriptor under which a process has the socket open; `first` is where it is looked for first."""
    wanted, folder = f"socket:[{inode}]", f"/proc/{pid}/fd"
    if first is not None and _link(f"{folder}/{first}") == wanted:
        return first
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return None
    return next((name for name in names if _link(f"{folder}/{name}") == wanted), None)


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""
