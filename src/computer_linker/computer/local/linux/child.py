"""The service's side of one child of the launcher: waiting for its order, then running."""

import asyncio
import contextlib
import os
import signal
import socket
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from computer_linker.computer.ending import Ending
from computer_linker.computer.facets.processes import (
    Covering,
    Echo,
    Ended,
    Launch,
    Mount,
    NamesChanged,
    PtySize,
    SignalName,
    Usage,
)
from computer_linker.computer.local.linux.child_streams import Streams, set_size
from computer_linker.computer.local.linux.covering import CLOSED, COVERED, GONE
from computer_linker.computer.local.linux.input_state import echo_of, waits_for_input
from computer_linker.computer.local.linux.staged_ahead import Recipe
from computer_linker.errors import ExecutionFailed
from computer_linker.system.proc_files import descendants, read

_MAX_PATH = 3000
"""Of a name that is closed again: a message to the launcher has 4,096 bytes."""
_COVERED_WITHIN_S = 10.0
_COVERINGS: dict[int, Covering] = {CLOSED: "closed", GONE: "closed", COVERED: "was closed"}


class Owner(Protocol):
    """The connection to the launcher."""

    def send(self, message: dict[str, Any]) -> None: ...


class Ready:
    """A forked child that waits for its order on the socket `link`."""

    def __init__(self, number: int, pid: int, link: socket.socket, client: str) -> None:
        self.client = client
        self.recipe: Recipe | None = None
        """The root it has staged, or is staging; None where it can stage any."""
        self.is_leaving = False
        """It is being ended, and can take no order."""
        self.id = number
        self.pid = pid
        self.link = link


class LinuxChild(Ending):
    """One child of the launcher."""

    def __init__(self, owner: Owner, ready: Ready, launch: Launch, streams: Streams) -> None:
        super().__init__()
        self.id = ready.id
        self.pid = ready.pid
        self.client = ready.client
        self._gate: socket.socket | None = ready.link
        self.stdin, self.stdout, self.stderr = streams.stdin, streams.stdout, streams.stderr
        self.failure: str | None = None
        self.names_changed = False
        self.namespace: int | None = None
        """The mount namespace of its root. Closed last, in a thread, because freeing a namespace blocks."""
        self.network = launch.staging.network if launch.staging is not None else None
        self._staged: asyncio.Future[Ended | None] | None = None
        self._streams = streams
        self._owner = owner
        self._wrapped = launch.wrapped
        self._is_pty = launch.pty is not None
        self.is_tunnel = launch.is_tunnel
        self.exceeded: tuple[tuple[str, int], ...] = ()
        """The limit that the service ended it for."""
        self._covering: dict[int, asyncio.Future[Covering]] = {}
        self._covered = 0

    async def is_staged(self) -> None:
        """Return once its root is staged; raises when that fails, and nothing of the program has run."""
        self._staged = asyncio.get_running_loop().create_future()
        try:
            ended = await self._staged
        except BaseException:
            self.kill()
            self._streams.close_ours()
            raise
        if ended is None:
            return
        self._streams.close_ours()
        if self.names_changed:
            raise NamesChanged
        raise ExecutionFailed(f"The program could not be started: {ended.reason or 'its process was ended'}.")

    def has_staged(self, ended: Ended | None) -> None:
        """Wake `is_staged`; `ended` is set when the process ended first."""
        if self._staged is not None and not self._staged.done():
            self._staged.set_result(ended)

    def go(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            with gate, contextlib.suppress(OSError):
                gate.send(b"g")

    def has_ended(self, ended: Ended) -> None:
        """Notify every waiter of its end; called once by the connection to the launcher."""
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.close()
        self.has_staged(ended)
        for waiting in self._covering.values():
            if not waiting.done():
                waiting.set_result("open")
        super().has_ended(ended)
        namespace, self.namespace = self.namespace, None
        if namespace is not None:
            asyncio.get_running_loop().run_in_executor(None, os.close, namespace)

    def signal(self, name: SignalName) -> None:
        if self.ended is None:
            number = int(signal.Signals["SIG" + name.upper()])
            self._owner.send({"do": "signal", "id": self.id, "number": number, "wrapped": self._wrapped})

    def kill(self) -> None:
        if self.ended is None:
            self._owner.send({"do": "kill", "id": self.id})

    async def cover(self, name: Mount) -> Covering:
        """Close a name of its root again."""
        if self.ended is not None or not self._wrapped or len(os.fsencode(name.at)) > _MAX_PATH:
            return "open"
        covered: asyncio.Future[Covering] = asyncio.get_running_loop().create_future()
        number = self._covered = self._covered + 1
        self._covering[number] = covered
        about = (os.fsencode(name.at), name.kind == "hidden", name.device, name.inode)
        self._owner.send({"do": "cover", "id": self.id, "number": number, "name": about})
        try:
            async with asyncio.timeout(_COVERED_WITHIN_S):
                return await covered
        except TimeoutError:
            return "open"
        finally:
            del self._covering[number]

    def has_covered(self, number: int, status: int) -> None:
        waiting = self._covering.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(_COVERINGS.get(status, "open"))

    def written(self) -> tuple[int, int]:
        """By the kernel's accounts; those of an ended process are its parent's, once that has waited for it."""
        disks = anywhere = 0
        for pid in (self.pid, *descendants(self.pid)):
            facts = dict(line.split(b": ") for line in read(f"/proc/{pid}/io").splitlines())
            disks += int(facts.get(b"write_bytes", 0))
            anywhere += int(facts.get(b"wchar", 0))
        return disks, anywhere

    def end_for(self, limit: str, value: int) -> None:
        self.exceeded = ((limit, value),)
        self.kill()

    def usage(self) -> Usage | None:
        return usage_of(self.pid) if self.ended is None else None

    def echo(self) -> Echo:
        return echo_of(self.stdout) if self._is_pty and self.ended is None else "none"

    def waits_for_input(self) -> bool | None:
        if self.ended is not None:
            return False
        return waits_for_input(self.pid, self.stdin, is_pty=self._is_pty, is_wrapped=self._wrapped)

    def resize(self, size: PtySize) -> None:
        if self._is_pty:
            set_size(self.stdout, size)


def ended_of(status: int, failure: str | None, reached: tuple[tuple[str, int], ...]) -> Ended:
    """Decode the wait status the launcher reaped."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Ended(128 + number, _signal_name(number), failure, reached)
    return Ended(os.WEXITSTATUS(status), None, failure, reached)


def reason_of(number: int, step: str) -> str:
    """The error for a child that could not execute its program, from the errno and the step it was at."""
    if step == "user namespace":
        return f"this system gives the service no user namespace to build its root in ({os.strerror(number)})"
    if step == "mount":
        return f"this system does not let the service build its root ({os.strerror(number)})"
    return f"{os.strerror(number)} ({step})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


# Resource usage of a process and its descendants, from /proc.

_MOST = 2000
_LISTENING = "0A"


def usage_of(pid: int) -> Usage | None:
    """CPU time, memory and listening ports of a process tree; None once it has ended."""
    pids = _tree(pid)
    if not pids:
        return None
    ticks, pages = 0, 0
    for member in pids:
        fields = _text(f"/proc/{member}/stat").rpartition(")")[2].split()
        if len(fields) > 21:
            ticks += int(fields[11]) + int(fields[12])
            pages += int(fields[21])
    return Usage(
        pids=len(pids),
        cpu_s=round(ticks / os.sysconf("SC_CLK_TCK"), 2),
        memory_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        ports=tuple(sorted(_ports(pids))),
    )


def _tree(pid: int) -> list[int]:
    if not Path(f"/proc/{pid}").exists():
        return []
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < _MOST:
        member = waiting.pop()
        found.append(member)
        waiting.extend(int(child) for child in _text(f"/proc/{member}/task/{member}/children").split())
    return found


def _ports(pids: list[int]) -> set[int]:
    """Ports the tree's sockets listen on, each read in the network namespace of its process."""
    ports: set[int] = set()
    tables: dict[str, dict[str, int]] = {}
    for pid in pids:
        inodes = _sockets(pid)
        if not inodes:
            continue
        space = _link(f"/proc/{pid}/ns/net")
        if space not in tables:
            tables[space] = {**_listening(f"/proc/{pid}/net/tcp"), **_listening(f"/proc/{pid}/net/tcp6")}
        ports |= {tables[space][inode] for inode in inodes if inode in tables[space]}
    return ports


def _sockets(pid: int) -> set[str]:
    try:
        names = list(islice(Path(f"/proc/{pid}/fd").iterdir(), _MOST))
    except OSError:
        return set()
    links = (_link(name) for name in names)
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def _listening(path: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in _text(path).splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTENING:
            found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _link(path: str | Path) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
