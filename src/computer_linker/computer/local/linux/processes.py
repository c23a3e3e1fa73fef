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

from computer_linker.computer.facets.processes import Child, Ended, Launch, NamesChanged
from computer_linker.computer.local.linux.child import LinuxChild, Ready, ended_of, reason_of
from computer_linker.computer.local.linux.child_streams import Streams
from computer_linker.computer.local.linux.id_range import other_ids
from computer_linker.computer.local.linux.launcher_protocol import most_open
from computer_linker.computer.local.linux.orders import send_order, send_staging
from computer_linker.computer.local.linux.staged_ahead import NextRoots, Recipe, close_all, recipe_of
from computer_linker.errors import ExecutionFailed, LimitExceeded, LinkError

_SOURCE = Path(__file__).parents[4]
_LAUNCHER = """
import sys
sys.path.append(sys.argv[1])
from computer_linker.computer.local.linux.launcher import serve
serve(int(sys.argv[2]))
"""
_MAX_AHEAD = 4
"""Children that wait for an order, each for another client."""
_MAX_STAGED = 2
"""Of those that have staged a root."""
_STAGED_S = 30.0
_MAX_RECEIVED = 64
"""Descriptors of one message: a namespace, and the listeners of a command's own network."""
_FORK_AHEAD_S = 0.01
"""Delay before a child for the next order is forked: not while a command starts, since both would be slower."""


class LinuxProcesses:
    """Starts processes through one launcher, which is started when first needed."""

    def __init__(self) -> None:
        self._control: socket.socket | None = None
        self._launcher: subprocess.Popen[bytes] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready: deque[Ready] = deque()
        self._wanted: deque[tuple[str, asyncio.Future[Ready]]] = deque()
        self._children: dict[int, LinuxChild] = {}
        self._next_roots = NextRoots()
        self.staged_s = _STAGED_S
        """How long a root that was staged ahead is kept: it keeps the file systems in it in use."""
        self._forking: Counter[str] = Counter()
        """Children of each client that are being forked."""

    @property
    def launcher_pid(self) -> int | None:
        """The launcher's process; None while there is none."""
        return self._launcher.pid if self._launcher is not None and self._control is not None else None

    def waiting_pids(self) -> set[int]:
        """The launcher's children that have no order yet, so that they run no program."""
        return {ready.pid for ready in self._ready}

    def tunnel_pids(self) -> set[int]:
        """The service's own tunnel programs."""
        return {child.pid for child in self._children.values() if child.is_tunnel}

    async def spawn(self, launch: Launch) -> Child:
        """Start a process; it waits at its gate until `go()`."""
        recipe = recipe_of(launch)
        staged = self._take_ready(launch.client, recipe) if recipe is not None else None
        if staged is not None:
            # Where what was staged ahead is another now, a root is staged anew.
            with contextlib.suppress(NamesChanged, ExecutionFailed):
                return await self._started(staged, launch, recipe)
        return await self._started(await self._next_ready(launch.client), launch, recipe)

    async def _started(self, ready: Ready, launch: Launch, recipe: Recipe | None) -> Child:
        """Give a waiting child its order, and before that the root to stage if it has none yet."""
        streams: Streams | None = None
        failure = None
        try:
            streams = Streams.open(launch)
            if launch.staging is not None and ready.recipe is None:
                terminal = None if launch.pty is None else streams.theirs[0]
                send_staging(ready.link, launch.staging, launch.limits, terminal)
            send_order(ready.link, launch, streams)
            streams.widen()
        except BrokenPipeError:
            # It has ended; the launcher reports the reason next.
            failure = "its process ended before it had its order"
        except BaseException:
            self.send({"do": "kill", "id": ready.id})
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
        if recipe is not None and launch.staging is not None:
            self._next_roots.put(launch.client, recipe, launch.staging)
        if self._loop is not None:
            self._loop.call_later(_FORK_AHEAD_S, self._fork_ahead, launch.client)
        if launch.staging is not None:
            await child.is_staged()
        return child

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

    def send(self, message: dict[str, Any]) -> None:
        """Send the launcher a small message; no effect when it has ended."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send(marshal.dumps(message))

    async def _next_ready(self, client: str) -> Ready:
        """A child that waits for an order of this client; forked when there is none."""
        self._start()
        ready = self._take_ready(client, None)
        if ready is not None:
            return ready
        assert self._loop is not None
        wanted: asyncio.Future[Ready] = self._loop.create_future()
        self._wanted.append((client, wanted))
        # A child that is being forked in advance serves too; a further one would not be needed.
        if self._forking[client] < sum(1 for other, _ in self._wanted if other == client):
            self._fork(client)
        return await wanted

    def _take_ready(self, client: str, recipe: Recipe | None) -> Ready | None:
        """A waiting child of this client that has staged this root, or without one a child that has staged none."""
        for ready in self._ready:
            if ready.client == client and ready.recipe == recipe and not ready.is_leaving:
                self._ready.remove(ready)
                return ready
        return None

    def _fork_ahead(self, client: str) -> None:
        """Fork a child for this client's next order, or for its next root; above the limit, the oldest is ended."""
        if self._control is None or self._forking[client]:
            return
        others = [ready for ready in self._ready if ready.recipe is None and not ready.is_leaving]
        if client not in self._next_roots:
            if any(ready.client == client for ready in others):
                return
            if len(others) >= _MAX_AHEAD:
                self._end(others[0])
        self._fork(client)

    def _stage_ahead(self, ready: Ready) -> bool:
        """Have a waiting child stage its client's next root, if there is one; above the limit, the oldest staged one is ended."""
        root = self._next_roots.take(ready.client)
        if root is None:
            return False
        recipe, staging = root
        try:
            send_staging(ready.link, staging, recipe.limits)
        except (OSError, LinkError):
            self._end(ready)
        finally:
            close_all(staging.fds)
        staged = [each for each in self._ready if each.recipe is not None and not each.is_leaving]
        same = [each for each in staged if (each.client, each.recipe) == (ready.client, recipe)]
        for each in same or staged[: len(staged) + 1 - _MAX_STAGED]:
            self._end(each)
        ready.recipe = recipe
        assert self._loop is not None
        self._loop.call_later(self.staged_s, self._end, ready)
        return True

    def _end(self, ready: Ready) -> None:
        """End a child that waits for its order; no effect once it has one."""
        if ready in self._ready and not ready.is_leaving:
            ready.is_leaving = True
            self.send({"do": "kill", "id": ready.id})

    def _fork(self, client: str) -> None:
        self._forking[client] += 1
        self.send({"do": "fork", "client": client, "ids": other_ids() or 0})

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
        # After starting the launcher, so that commands inherit the usual limit: each one costs the service some descriptors.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most_open(hard)[0]), hard))
        self._loop = asyncio.get_running_loop()
        self._control = ours
        self._loop.add_reader(ours.fileno(), self._receive, ours)

    def _receive(self, control: socket.socket) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(
                control, 4096, _MAX_RECEIVED, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
            )
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
                self._has_ready(Ready(message["id"], message["pid"], link, message["client"]))
            case "staged":
                self._has_staged(message["id"], fds[0], fds[1:])
            case "failed" if not message["id"]:
                self._has_not_forked(message["client"], message["errno"])
            case "failed":
                self._has_failed(message["id"], reason_of(message["errno"], message["step"]), message["step"])
            case "covered":
                covered = self._children.get(message["id"])
                if covered is not None:
                    covered.has_covered(message["number"], message["status"])
            case "exit":
                self._has_ended(message["id"], message["status"], message["reached"])

    def _has_ended(self, number: int, status: int, reached: list[tuple[str, int]]) -> None:
        client = None
        child = self._children.pop(number, None)
        if child is not None:
            client = child.client
            child.has_ended(ended_of(status, child.failure, (*reached, *child.exceeded)))
        for ready in [ready for ready in self._ready if ready.id == number]:
            # It ended before it had an order.
            self._ready.remove(ready)
            ready.link.close()
            client = ready.client if len(self._ready) < _MAX_AHEAD - 1 else None
        if client is not None:
            # After the waiter for this one has resumed.
            asyncio.get_running_loop().call_soon(self._fork_ahead, client)

    def _has_ready(self, ready: Ready) -> None:
        self._forking[ready.client] -= 1
        while (wanted := self._next_wanted(ready.client)) is not None:
            if not wanted.done():
                wanted.set_result(ready)
                return
        self._ready.append(ready)
        if self._stage_ahead(ready):
            # Its place is taken by another.
            self._fork_ahead(ready.client)

    def _next_wanted(self, client: str) -> asyncio.Future[Ready] | None:
        for entry in self._wanted:
            if entry[0] == client:
                self._wanted.remove(entry)
                return entry[1]
        return None

    def _has_staged(self, number: int, namespace: int, listeners: list[int]) -> None:
        child = self._children.get(number)
        if child is None:
            for fd in (namespace, *listeners):
                os.close(fd)
        else:
            child.namespace = namespace
            if child.network is not None:
                child.network.opened(listeners)
            child.has_staged(None)

    def _has_failed(self, number: int, reason: str, step: str) -> None:
        child = self._children.get(number)
        if child is not None:
            child.failure = reason
            child.names_changed = step == "changed"
        # Else a child that waits for its order; its end is reported next.

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
        """The launcher died, and its children with it. The next launcher ends their descendants by their control groups."""
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
        self._next_roots.close()
        self._forking.clear()
        for _, wanted in self._wanted:
            if not wanted.done():
                wanted.set_exception(ExecutionFailed(reason))
        self._wanted.clear()
        for child in list(self._children.values()):
            child.has_ended(Ended(128 + signal.SIGKILL, "SIGKILL", reason=reason))
        self._children.clear()
