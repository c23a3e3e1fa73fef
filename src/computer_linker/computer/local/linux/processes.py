"""Processes on Linux: the service's side of the launcher."""

import asyncio
import contextlib
import errno
import marshal
import os
import resource
import signal
import socket
import subprocess
import sys
from collections import Counter, deque
from pathlib import Path
from typing import Any

import anyio

from computer_linker.computer.facets.ending import Ending
from computer_linker.computer.facets.processes import (
    Child,
    Ended,
    Launch,
    NamesChanged,
    PtySize,
    SignalName,
    Usage,
)
from computer_linker.computer.local.linux.child_endings import ended_of, reason_of
from computer_linker.computer.local.linux.child_streams import Streams, set_size
from computer_linker.computer.local.linux.launcher_words import SYNC
from computer_linker.computer.local.linux.orders import send_order
from computer_linker.computer.local.linux.usage import usage_of
from computer_linker.errors import ExecutionFailed, LimitExceeded

_SOURCE = Path(__file__).parents[4]
_LAUNCHER = """
import sys
sys.path.append(sys.argv[1])
from computer_linker.computer.local.linux.launcher import serve
serve(int(sys.argv[2]))
"""
_DESCRIPTORS = 16_384
_MAX_AHEAD = 4
"""Children that wait for an order, each for another client."""
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
        self._wanted: deque[tuple[str, asyncio.Future[_Ready]]] = deque()
        self._children: dict[int, LinuxChild] = {}
        self._forking: Counter[str] = Counter()
        """Children of each client that are being forked."""

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
        ready = launch.ahead if isinstance(launch.ahead, _Ready) else await self._next_ready(launch.client)
        self._ahead.pop(ready.id, None)
        if ready.ended is not None:
            raise ExecutionFailed(f"The program could not be started: {ready.ended}.")
        streams: Streams | None = None
        failure = None
        try:
            streams = Streams.open(launch)
            send_order(ready.link, launch, streams)
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
            self._loop.call_later(_FORK_AHEAD_S, self._fork_ahead, launch.client)
        if launch.staging is not None:
            await child.is_staged()
        return child

    def sync_ahead(self, fd: int, client: str = "") -> "_Ready | None":
        """Have a child that waits for an order of this client sync this file first; None when none waits."""
        ready = self._take_ready(client)
        if ready is None:
            return None
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

    async def _next_ready(self, client: str) -> "_Ready":
        """A child that waits for an order of this client; another is forked in its place once it has ended."""
        self._start()
        ready = self._take_ready(client)
        if ready is not None:
            return ready
        assert self._loop is not None
        wanted: asyncio.Future[_Ready] = self._loop.create_future()
        self._wanted.append((client, wanted))
        # One that is being forked ahead serves too: another would wait for nobody.
        if self._forking[client] < sum(1 for other, _ in self._wanted if other == client):
            self._fork(client)
        return await wanted

    def _take_ready(self, client: str) -> "_Ready | None":
        for ready in self._ready:
            if ready.client == client:
                self._ready.remove(ready)
                return ready
        return None

    def _fork_ahead(self, client: str) -> None:
        """Have a child wait for this client's next order; the oldest of too many is ended."""
        if self._control is None or self._forking[client] or any(ready.client == client for ready in self._ready):
            return
        if len(self._ready) >= _MAX_AHEAD:
            self.tell({"do": "kill", "id": self._ready[0].id})
        self._fork(client)

    def _fork(self, client: str) -> None:
        self._forking[client] += 1
        self.tell({"do": "fork", "client": client})

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
            data, fds, _, _ = socket.recv_fds(control, 4096, 1, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
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
                link = socket.socket(fileno=fds[0])
                self._has_ready(_Ready(self, message["id"], message["pid"], link, message["client"]))
            case "staged":
                self._has_staged(message["id"], fds[0])
            case "failed" if not message["id"]:
                self._has_not_forked(message["client"], message["errno"])
            case "failed":
                self._has_failed(message["id"], reason_of(message["errno"], message["step"]), message["step"])
            case "exit":
                self._has_ended(message["id"], message["status"], message["reached"])

    def _has_ended(self, number: int, status: int, reached: list[tuple[str, int]]) -> None:
        client = None
        child = self._children.pop(number, None)
        if child is not None:
            client = child.client
            child.has_ended(ended_of(status, child.failure, tuple(reached)))
        if number in self._ahead:
            ahead = self._ahead[number]
            client = ahead.client
            ahead.ended = ahead.failure or "its process was ended"
            ahead.link.close()
        for ready in [ready for ready in self._ready if ready.id == number]:
            # It was ended before it had an order.
            self._ready.remove(ready)
            ready.link.close()
            client = ready.client if len(self._ready) < _MAX_AHEAD - 1 else None
        if client is not None:
            # After the waiter for this one has gone on.
            asyncio.get_running_loop().call_soon(self._fork_ahead, client)

    def _has_ready(self, ready: "_Ready") -> None:
        self._forking[ready.client] -= 1
        while (wanted := self._next_wanted(ready.client)) is not None:
            if not wanted.done():
                wanted.set_result(ready)
                return
        self._ready.append(ready)

    def _next_wanted(self, client: str) -> "asyncio.Future[_Ready] | None":
        for entry in self._wanted:
            if entry[0] == client:
                self._wanted.remove(entry)
                return entry[1]
        return None

    def _has_staged(self, number: int, namespace: int) -> None:
        child = self._children.get(number)
        if child is None:
            os.close(namespace)
        else:
            child.namespace = namespace
            child.has_staged(None)

    def _has_failed(self, number: int, reason: str, step: str) -> None:
        child = self._children.get(number)
        if child is not None:
            child.failure = reason
            child.names_changed = step == "changed"
            return
        if number in self._ahead:
            self._ahead[number].failure = reason
        # Else a child that waits for its order; that it has ended is reported next.

    def _has_not_forked(self, client: str, number: int) -> None:
        self._forking[client] -= 1
        wanted = self._next_wanted(client)
        if wanted is None or wanted.done():
            return
        if number == errno.EAGAIN:
            wanted.set_exception(
                LimitExceeded("Your commands together have reached their limit of processes; stop some.")
            )
        else:
            wanted.set_exception(
                ExecutionFailed(f"The system cannot start another process: {reason_of(number, 'fork')}.")
            )

    def _launcher_gone(self, control: socket.socket) -> None:
        """The launcher died: the kernel ended its children with it. Another ends what those had started, see its groups."""
        had_children = bool(self._children)
        if self._loop is not None:
            self._loop.remove_reader(control.fileno())
        control.close()
        if self._control is control:
            self._control = None
        if self._launcher is not None:
            self._launcher.wait()
        self._forget("The launcher of commands died.")
        if had_children:
            self._start()

    def _forget(self, reason: str) -> None:
        for ready in self._ready:
            ready.link.close()
        self._ready.clear()
        for ready in self._ahead.values():
            ready.ended = reason
            ready.link.close()
        self._forking.clear()
        for _, wanted in self._wanted:
            if not wanted.done():
                wanted.set_exception(ExecutionFailed(reason))
        self._wanted.clear()
        for child in list(self._children.values()):
            child.has_ended(Ended(128 + signal.SIGKILL, "SIGKILL", reason=reason))
        self._children.clear()


class _Ready:
    """A forked child that waits for its order at `link`."""

    def __init__(self, owner: LinuxProcesses, number: int, pid: int, link: socket.socket, client: str) -> None:
        self._owner = owner
        self.client = client
        self.id = number
        self.pid = pid
        self.link = link
        self.failure: str | None = None
        self.ended: str | None = None
        """Why it can take no order any more."""

    def give_back(self) -> None:
        """There was no order for it after all."""
        self._owner.give_back(self)


class LinuxChild(Ending):
    """One process the launcher holds."""

    def __init__(self, owner: LinuxProcesses, ready: _Ready, launch: Launch, streams: "Streams") -> None:
        super().__init__()
        self.id = ready.id
        self.pid = ready.pid
        self.client = ready.client
        self._gate: socket.socket | None = ready.link
        self.stdin, self.stdout, self.stderr = streams.stdin, streams.stdout, streams.stderr
        self.failure: str | None = None
        self.names_changed = False
        self.namespace: int | None = None
        """The mounts of its root. We are the last to let go of them, in a thread, so that nobody waits for it."""
        self._staged: asyncio.Future[Ended | None] | None = None
        self._streams = streams
        self._owner = owner
        self._wrapped = launch.wrapped
        self._is_pty = launch.pty is not None
        self.is_tunnel = launch.is_tunnel

    async def is_staged(self) -> None:
        """Return once its root stands; raises, and nothing of it has run, when that cannot be."""
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
        """Tell the one who waits; with how it ended, if that came first."""
        if self._staged is not None and not self._staged.done():
            self._staged.set_result(ended)

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
        self.has_staged(ended)
        super().has_ended(ended)
        namespace, self.namespace = self.namespace, None
        if namespace is not None:
            asyncio.get_running_loop().run_in_executor(None, os.close, namespace)

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
