"""Processes on Linux: the service's side of the launcher."""

import asyncio
import contextlib
import marshal
import os
import resource
import signal
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any

import anyio

from computer_linker.computer.facets.ending import Ending
from computer_linker.computer.facets.processes import Child, Ended, Launch, PtySize, SignalName, Usage
from computer_linker.computer.local.linux.child_streams import Streams, set_size
from computer_linker.computer.local.linux.kernel_rules import compiled
from computer_linker.computer.local.linux.launcher_words import SYNC
from computer_linker.computer.local.linux.usage import usage_of
from computer_linker.errors import ExecutionFailed, LimitExceeded

_SOURCE = Path(__file__).parents[4]
_LAUNCHER = """
import sys
sys.path.append(sys.argv[1])
from computer_linker.computer.local.linux.launcher import serve
serve(int(sys.argv[2]))
"""
_LIMITS = {"RLIMIT_CORE": 0}
_MAX_PACKET = 190_000
_DESCRIPTORS = 16_384
_FORK_AHEAD_S = 0.01
"""A child for the next order is forked once this one has ended, or a little later: not while it starts, for both would wait."""


class LinuxProcesses:
    """Starts processes through one launcher, which is started when first needed."""

    def __init__(self) -> None:
        self._control: socket.socket | None = None
        self._launcher: subprocess.Popen[bytes] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready: deque[_Ready] = deque()
        self._ahead: dict[int, _Ready] = {}
        """Those at work ahead of their order."""
        self._wanted: deque[asyncio.Future[_Ready]] = deque()
        self._children: dict[int, LinuxChild] = {}
        self._forking = 0

    @property
    def launcher_pid(self) -> int | None:
        """The launcher's process; None while there is none."""
        return self._launcher.pid if self._launcher is not None and self._control is not None else None

    def waiting_pids(self) -> set[int]:
        """The launcher's children that have no order yet, so that they run no program."""
        return {ready.pid for ready in (*self._ready, *self._ahead.values())}

    def tunnel_pids(self) -> set[int]:
        """The service's own tunnel programs."""
        return {child.pid for child in self._children.values() if child.is_tunnel}

    async def spawn(self, launch: Launch) -> Child:
        """Start a process; it waits at its gate until `go()`."""
        ready = launch.ahead if isinstance(launch.ahead, _Ready) else await self._next_ready()
        self._ahead.pop(ready.id, None)
        if ready.ended is not None:
            raise ExecutionFailed(f"The program could not be started: {ready.ended}.")
        streams: Streams | None = None
        failure = None
        try:
            streams = Streams.open(launch)
            _order(ready, launch, streams)
            streams.widen()
        except BrokenPipeError:
            # It has ended; why, the launcher tells next.
            failure = "its process ended before it had its order"
        except BaseException:
            self.tell({"do": "kill", "id": ready.id})
            ready.link.close()
            if streams is not None:
                streams.close_ours()
            raise
        finally:
            if streams is not None:
                streams.close_theirs()
        assert streams is not None
        child = LinuxChild(self, ready, launch, streams)
        child.failure = failure
        self._children[ready.id] = child
        if self._loop is not None:
            self._loop.call_later(_FORK_AHEAD_S, self._fork_ahead)
        return child

    def sync_ahead(self, fd: int) -> "_Ready | None":
        """Have a child that waits for its order sync this file first; None when none waits."""
        if not self._ready:
            return None
        ready = self._ready.popleft()
        self._ahead[ready.id] = ready
        try:
            socket.send_fds(ready.link, [SYNC], [fd])
        except OSError as error:
            # It has just ended. Nobody syncs the file now, so nothing may start.
            ready.ended = error.strerror or "its process was ended"
        return ready

    def give_back(self, ready: "_Ready") -> None:
        """A child that waits for an order again."""
        if self._ahead.pop(ready.id, None) is not None and ready.ended is None:
            self._ready.append(ready)

    async def aclose(self) -> None:
        """End every process that was started here, and the launcher."""
        control, self._control = self._control, None
        if control is None or self._launcher is None:
            return
        launcher = self._launcher
        if self._loop is not None:
            self._loop.remove_reader(control.fileno())
        control.close()
        await anyio.to_thread.run_sync(launcher.wait)
        self._forget("The service stopped.")

    def tell(self, message: dict[str, Any]) -> None:
        """Send the launcher a small message; nothing when it is gone."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send(marshal.dumps(message))

    async def _next_ready(self) -> "_Ready":
        """A child that waits for its order; another is forked in its place once it has ended."""
        self._start()
        if self._ready:
            return self._ready.popleft()
        assert self._loop is not None
        wanted: asyncio.Future[_Ready] = self._loop.create_future()
        self._wanted.append(wanted)
        # One that is being forked ahead serves too: another would wait for nobody.
        if self._forking < len(self._wanted):
            self._fork()
        return await wanted

    def _fork_ahead(self) -> None:
        """Have a child wait for the next order."""
        if self._control is not None and not self._ready and not self._forking:
            self._fork()

    def _fork(self) -> None:
        self._forking += 1
        self.tell({"do": "fork"})

    def _start(self) -> None:
        if self._control is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(_SOURCE), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                close_fds=True,
                env={},
            )
        # After the launcher, so that commands keep the usual limit: each running one costs the service a few descriptors.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < _DESCRIPTORS:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(_DESCRIPTORS, hard), hard))
        self._loop = asyncio.get_running_loop()
        self._control = ours
        self._loop.add_reader(ours.fileno(), self._receive, ours)

    def _receive(self, control: socket.socket) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(control, 4096, 1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self._launcher_gone(control)
            return
        message = marshal.loads(data)  # noqa: S302  # from our own launcher
        match message["event"]:
            case "ready":
                self._has_ready(_Ready(self, message["id"], message["pid"], socket.socket(fileno=fds[0])))
            case "failed":
                self._has_failed(message["id"], _reason(message["errno"], message["step"]))
            case "exit":
                self._has_ended(message["id"], message["status"])

    def _has_ended(self, number: int, status: int) -> None:
        child = self._children.pop(number, None)
        if child is not None:
            child.has_ended(_ended(status, child.failure))
        if number in self._ahead:
            ahead = self._ahead[number]
            ahead.ended = ahead.failure or "its process was ended"
            ahead.link.close()
        for ready in [ready for ready in self._ready if ready.id == number]:
            # It was ended before it had an order.
            self._ready.remove(ready)
            ready.link.close()
        # After whoever waited for this one has gone on.
        asyncio.get_running_loop().call_soon(self._fork_ahead)

    def _has_ready(self, ready: "_Ready") -> None:
        self._forking -= 1
        ready.link.set_inheritable(False)
        while self._wanted:
            wanted = self._wanted.popleft()
            if not wanted.done():
                wanted.set_result(ready)
                return
        self._ready.append(ready)

    def _has_failed(self, number: int, reason: str) -> None:
        child = self._children.get(number)
        if child is not None:
            child.failure = reason
            return
        if number in self._ahead:
            self._ahead[number].failure = reason
            return
        if number:
            # A child that waits for its order; that it has ended is told next.
            return
        self._forking -= 1
        if self._wanted:
            wanted = self._wanted.popleft()
            if not wanted.done():
                wanted.set_exception(ExecutionFailed(f"The system cannot start another process: {reason}."))

    def _launcher_gone(self, control: socket.socket) -> None:
        """The launcher died: the kernel ended its children with it. The next command starts another."""
        if self._loop is not None:
            self._loop.remove_reader(control.fileno())
        control.close()
        if self._control is control:
            self._control = None
        if self._launcher is not None:
            self._launcher.wait()
        self._forget("The launcher of commands died.")

    def _forget(self, reason: str) -> None:
        for ready in self._ready:
            ready.link.close()
        self._ready.clear()
        for ready in self._ahead.values():
            ready.ended = reason
            ready.link.close()
        self._forking = 0
        for wanted in self._wanted:
            if not wanted.done():
                wanted.set_exception(ExecutionFailed(reason))
        self._wanted.clear()
        for child in list(self._children.values()):
            child.has_ended(Ended(128 + signal.SIGKILL, "SIGKILL", reason=reason))
        self._children.clear()


class _Ready:
    """A forked child that waits for its order at `link`."""

    def __init__(self, owner: LinuxProcesses, number: int, pid: int, link: socket.socket) -> None:
        self._owner = owner
        self.id = number
        self.pid = pid
        self.link = link
        self.failure: str | None = None
        self.ended: str | None = None
        """Why it can take no order any more."""

    def give_back(self) -> None:
        """There was no order for it after all."""
        self._owner.give_back(self)


def _order(ready: _Ready, launch: Launch, streams: "Streams") -> None:
    fds = [*streams.theirs, *launch.fds]
    cwd = None
    if launch.cwd_fd is not None:
        cwd = len(fds)
        fds.append(launch.cwd_fd)
    order = {
        "argv": launch.argv,
        "env": launch.env,
        "stdio": streams.stdio,
        "fds": [len(streams.theirs) + at for at in range(len(launch.fds))],
        "cwd": cwd,
        "pty": launch.pty is not None,
        "wrapped": launch.wrapped,
        "gate": launch.gate,
        "limits": _LIMITS,
        "kernel": compiled(launch.kernel),
    }
    packet = marshal.dumps(order)
    if len(packet) > _MAX_PACKET:
        raise LimitExceeded("The command and its environment are too long.", bytes=len(packet), limit=_MAX_PACKET)
    try:
        socket.send_fds(ready.link, [packet], fds)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ExecutionFailed("The system could not start the command; try again.") from error


class LinuxChild(Ending):
    """One process the launcher holds."""

    def __init__(self, owner: LinuxProcesses, ready: _Ready, launch: Launch, streams: "Streams") -> None:
        super().__init__()
        self.id = ready.id
        self.pid = ready.pid
        self._gate: socket.socket | None = ready.link
        self.stdin, self.stdout, self.stderr = streams.stdin, streams.stdout, streams.stderr
        self.failure: str | None = None
        self._owner = owner
        self._wrapped = launch.wrapped
        self._is_pty = launch.pty is not None
        self.is_tunnel = launch.is_tunnel

    def go(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            with gate, contextlib.suppress(OSError):
                gate.send(b"g")

    def has_ended(self, ended: Ended) -> None:
        """Tell everyone who waits; called once by the launcher's side."""
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.close()
        super().has_ended(ended)

    def signal(self, name: SignalName) -> None:
        if self.ended is None:
            number = int(signal.Signals["SIG" + name.upper()])
            self._owner.tell({"do": "signal", "id": self.id, "number": number, "wrapped": self._wrapped})

    def kill(self) -> None:
        if self.ended is None:
            self._owner.tell({"do": "kill", "id": self.id})

    def usage(self) -> Usage | None:
        return usage_of(self.pid) if self.ended is None else None

    def resize(self, size: PtySize) -> None:
        if self._is_pty:
            set_size(self.stdout, size)


def _ended(status: int, failure: str | None) -> Ended:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Ended(128 + number, _signal_name(number), failure)
    code = os.WEXITSTATUS(status)
    return Ended(code, None, failure)


def _reason(number: int, step: str) -> str:
    if step == "sync":
        return f"its record in the history could not be kept on the disk ({os.strerror(number)})"
    return f"{os.strerror(number)} ({step})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
