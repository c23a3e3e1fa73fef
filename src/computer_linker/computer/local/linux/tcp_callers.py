"""Which process is at the other end of a local TCP connection: a command's connection is refused.

A connection counts as another program's only when a process that no command started is found to hold its far end. A far end
that no process holds (closed, or in flight inside another socket) may be a command's, and is refused.
"""

import os
import socket
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from computer_linker.system.lineage import is_below
from computer_linker.system.linux import started_at
from computer_linker.system.proc_files import children, descendants, origin_of

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
_LISTENS = 10
_ANSWER_S = 1.0
_MAX_REMEMBERED = 8
_MAX_DECIDED = 1024
_KEPT_S = 0.1
_MOST_COMMANDS, _MOST_OF_COMMAND = 64, 256
"""Scan bounds: processes of commands, and descriptors of each."""
Address = tuple[Any, ...]
"""A host and a port first, as getsockname gives them."""
Link = tuple[Address, Address]
"""Both ends of a connection, ours first."""


class Commands(Protocol):
    """The part of the process backend that is needed here."""

    @property
    def launcher_pid(self) -> int | None: ...

    def waiting_pids(self) -> set[int]: ...

    def tunnel_pids(self) -> set[int]: ...


class TcpCallers:
    """Distinguishes a command's connections from others. Caches a few programs, since clients reconnect often."""

    def __init__(self, commands: Commands, *, for_tunnel: bool = False) -> None:
        """`for_tunnel`: for the tunnel's own port, where its program, also started by the launcher, is accepted."""
        self._commands = commands
        self._for_tunnel = for_tunnel
        self._lock = threading.Lock()
        self._has_commands_until = 0.0
        self._known: OrderedDict[tuple[int, int], str] = OrderedDict()
        """Accepted programs (for life) by pid and start time, with the last descriptor."""
        self._of_applications: OrderedDict[int, bool] = OrderedDict()
        """Whether connections, by the inode of their far end, are of applications."""

    @property
    def is_needed(self) -> bool:
        """False while no command has been started."""
        return self._commands.launcher_pid is not None

    def check_fast(self, here: Address, there: Address | None) -> bool | None:
        """Whether this connection is accepted; None when that needs `check_by_scan`. For the thread that starts commands."""
        launcher = self._commands.launcher_pid
        if launcher is None:
            return True
        # In this order: what is still held when no command is left is not held by one.
        has_commands = self._has_commands(launcher)
        if not _has_sock_diag():
            return not has_commands
        if there is None:
            # It was reset: a command may send a request this way and end.
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
        return True if self._is_of_known(found.inode) else None

    def _has_commands(self, launcher: int) -> bool:
        """Whether a command may be running. True is cached for a moment: it only causes a scan."""
        now = time.monotonic()
        if now < self._has_commands_until:
            return True
        if self._commands.waiting_pids().issuperset(children(launcher)):
            return False
        self._has_commands_until = now + _KEPT_S
        return True

    def check_by_scan(self, links: Sequence[Link]) -> list[bool | None]:
        """The same for several connections by one scan of the open files of every process; None requests another scan.

        For a worker thread. However many connections there are, /proc is read once.
        """
        launcher = self._commands.launcher_pid
        tunnels = self._commands.tunnel_pids() if self._for_tunnel else set[int]()
        inodes = [_inode(*link) for link in links]
        if launcher is None:
            return [False] * len(inodes)
        holders = _holders({inode for inode in inodes if inode}, launcher, tunnels)
        verdicts = {inode: self._verdict(holder, launcher, tunnels) for inode, holder in holders.items()}
        return [verdicts.get(inode) if inode else False for inode in inodes]

    def is_of_application(self, here: Address, there: Address) -> bool:
        """Whether a program that this service started itself, such as an application, has the far end open.

        Also where it is closed by now: a program may send a request and close. For a worker thread; decided once for each
        connection.
        """
        if not _has_sock_diag():
            return False
        inode = _inode(here, there)
        if inode == 0 or inode in self._of_applications:
            return self._of_applications.get(inode, True)
        found = any(_held_as(pid, {inode}) for pid in _started_here(self._commands.launcher_pid))
        with self._lock:
            self._of_applications[inode] = found
            while len(self._of_applications) > _MAX_DECIDED:
                self._of_applications.popitem(last=False)
        return found

    def _verdict(self, holder: "_Holder", launcher: int, tunnels: set[int]) -> bool | None:
        below = _is_command(holder.pid, launcher, tunnels)
        if below is None or started_at(holder.pid) != holder.started:
            return None
        if not below:
            self._remember((holder.pid, holder.started), holder.fd)
        return not below

    def _is_of_known(self, inode: int) -> bool:
        """Whether a program that was accepted before holds the connection as its last descriptor."""
        with self._lock:
            remembered = list(self._known.items())
        for known, last_fd in remembered:
            fd = _held_as(known[0], {inode}, last_fd, most=0).get(inode)
            if fd is not None and started_at(known[0]) == known[1]:
                self._remember(known, fd)
                return True
        return False

    def _remember(self, known: tuple[int, int], fd: str) -> None:
        with self._lock:
            self._known[known] = fd
            self._known.move_to_end(known, last=False)
            while len(self._known) > _MAX_REMEMBERED:
                self._known.popitem()


def _is_command(pid: int, launcher: int, tunnels: set[int]) -> bool | None:
    below = is_below(pid, launcher)
    if below and (pid in tunnels or any(is_below(pid, tunnel) for tunnel in tunnels)):
        return False
    return below


def _started_here(launcher: int | None) -> list[int]:
    """The descendants of this process that are no commands. By their parents: /proc lists children by thread."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (origin := origin_of(int(name))) is not None:
            children.setdefault(origin[0], []).append(int(name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        new = [pid for pid in children.pop(waiting.pop(), []) if pid != launcher]
        found += new
        waiting += new
    return found


class _Socket(NamedTuple):
    """The user and inode of a socket; 0 when no process holds it any more."""

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
        # The kernel replies before `send` returns; a reply it had to drop must not block the service.
        diag.settimeout(_ANSWER_S)
        diag.send(struct.pack("=IHHII", 16 + len(question), _BY_FAMILY, _REQUEST, 1, 0) + question)
        answer = diag.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] != _BY_FAMILY or answer[17] == _LISTENS:
        return None
    return _Socket(*struct.unpack_from("=II", answer, 80))


@lru_cache(maxsize=1)
def _has_sock_diag() -> bool:
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
    """Whether the kernel treats the address as local."""
    with socket.socket(_family(address), socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _inode(here: Address, there: Address) -> int:
    """The inode of the far end's socket; 0 when it is closed, or the kernel does not answer."""
    try:
        found = _far_end(here, there)
    except OSError:
        return 0
    return 0 if found is None else found.inode


class _Holder(NamedTuple):
    """A process that has a socket open, its start time, and the descriptor."""

    pid: int
    started: int
    fd: str


def _holders(wanted: set[int], launcher: int, tunnels: set[int]) -> dict[int, _Holder]:
    """A process that holds each of these sockets; a command before any other.

    Commands are scanned first, so that a flood of their connections costs no scan of the rest. Only up to a bound, since they
    choose how much they open; a socket that is not found is refused, so the bound alone accepts no command.
    """
    below = set(descendants(launcher))
    below -= {*tunnels, *(pid for tunnel in tunnels for pid in descendants(tunnel))}
    # The newest first: short-lived programs open most new connections.
    pids = sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True)  # noqa: PTH208
    commands = [pid for pid in pids if pid in below]
    found: dict[int, _Holder] = {}
    for pid in (*commands[:_MOST_COMMANDS], *(pid for pid in pids if pid not in below)):
        if len(found) == len(wanted):
            break
        found |= _held_by(pid, wanted - found.keys(), _MOST_OF_COMMAND if pid in below else None)
    return found


def _held_by(pid: int, wanted: set[int], most: int | None) -> dict[int, _Holder]:
    held = _held_as(pid, wanted, most=most)
    start = started_at(pid) if held else None
    if start is None:
        return {}
    # Still held after the start time was read: so the pid was not reused.
    return {one: _Holder(pid, start, fd) for one, fd in held.items() if _held_as(pid, {one}, fd, most=0)}


def _held_as(pid: int, wanted: set[int], first: str | None = None, *, most: int | None = None) -> dict[int, str]:
    """The descriptors under which a process has these sockets open.

    `first` is the descriptor checked first, `most` how many are checked otherwise (None: all).
    """
    names, folder = {f"socket:[{inode}]": inode for inode in wanted}, f"/proc/{pid}/fd"
    if first is not None and (inode := names.get(_link(f"{folder}/{first}"))) is not None:
        return {inode: first}
    try:
        places = os.listdir(folder)[:most] if most != 0 else []  # noqa: PTH208
    except OSError:
        return {}
    return {names[link]: place for place in places if (link := _link(f"{folder}/{place}")) in names}


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""
