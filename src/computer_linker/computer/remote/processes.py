"""Processes of another machine: started, confined and held there, with their streams as local pipes."""

import asyncio
import errno
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any

import anyio

from computer_linker.computer.ending import Ending
from computer_linker.computer.facets.processes import Child, Ended, KernelRules, Launch, PtySize, SignalName, Usage
from computer_linker.computer.remote.link import Link, ask, subscribe
from computer_linker.computer.remote.methods import FED, RESUME_S, FarLaunch, Spawned, methods_of
from computer_linker.errors import InvalidRequest, LinkError, ProviderUnavailable
from computer_linker.system import os

log = logging.getLogger(__name__)
_PAUSE_S = 0.2
_CLOSE_S = 10.0


class RemoteProcesses:
    """Starts programs there. That machine applies its own policy and its own sandbox."""

    def __init__(self, link: Link, scope: Callable[[], str]) -> None:
        self._link, self._scope = link, scope
        self._children: set[RemoteChild] = set()

    async def spawn(self, launch: Launch) -> Child:
        """Start a program there; it waits at its gate until `go()`. Raises that machine's error."""
        _refuse_what_cannot_travel(launch)
        there = _RemoteCalls(self._link, self._scope())
        request = FarLaunch(launch.argv, dict(launch.env), launch.stdin, launch.pty)
        spawned: Spawned = await there.ask("spawn", request)
        child = RemoteChild(there, spawned, launch)
        self._children.add(child)
        child.when_ended(lambda _: self._children.discard(child))
        return child

    async def aclose(self) -> None:
        """End every process that was started from here."""
        children = list(self._children)
        for child in children:
            child.kill()
        with anyio.move_on_after(_CLOSE_S):
            for child in children:
                with suppress(LinkError):
                    await child.wait()
        for child in children:
            await child.let_go()


class RemoteChild(Ending):
    """A process there. Its usage is polled in the background, so `usage` returns the last known value."""

    def __init__(self, there: "_RemoteCalls", spawned: Spawned, launch: Launch) -> None:
        super().__init__()
        self.pid = spawned.pid
        self._there, self._process, self._missing = there, spawned.process, spawned.missing
        self._lost: LinkError | None = None
        self._usage: Usage | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._orders: asyncio.Queue[tuple[str, tuple[Any, ...]]] = asyncio.Queue()
        self.stdin: int | None = None
        self.stderr: int | None = None
        self.stdout, out = _pipe(ours_writes=True)
        self._carry("stdout", out, self._copy_output)
        if launch.pty is None:
            self.stderr, err = _pipe(ours_writes=True)
            self._carry("stderr", err, self._copy_output)
        if launch.stdin == "pipe" or launch.pty is not None:
            self.stdin, source = _pipe(ours_writes=False)
            self._carry("stdin", source, self._copy_input)
        if self._missing is None:
            self._begin("ending", self._watch())
            self._begin("orders", self._send_orders())

    def go(self) -> None:
        if self._missing is not None:
            self.has_ended(Ended(127, reason=self._missing))
        else:
            self._orders.put_nowait(("go", ()))

    async def wait(self) -> Ended:
        """Return once it has ended. Raises when the link was lost, since its exit status is then unknown."""
        ended = await super().wait()
        if self._lost is not None:
            raise self._lost
        return ended

    def signal(self, name: SignalName) -> None:
        self._order("signal", name)

    def kill(self) -> None:
        if self.ended is None and self._missing is not None:
            self.has_ended(Ended(137, "SIGKILL"))
        elif self.ended is None and "kill" not in self._tasks:
            # Bypasses the queue: another order may be waiting for a program that does nothing.
            self._begin("kill", self._one("kill"))

    def usage(self) -> Usage | None:
        if self.ended is None and self._missing is None and "usage" not in self._tasks:
            self._begin("usage", self._ask_usage())
        return None if self.ended is not None else self._usage

    def resize(self, size: PtySize) -> None:
        self._order("resize", size)

    def has_ended(self, ended: Ended) -> None:
        """Handle its end: no further orders are sent, and pending input is dropped."""
        super().has_ended(ended)
        for name in ("stdin", "orders"):
            if (task := self._tasks.get(name)) is not None and task is not asyncio.current_task():
                task.cancel()

    async def let_go(self) -> None:
        """Cancel all local tasks of this process."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[name] = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    def _carry(self, name: str, fd: int, work: "Callable[[str, int], Coroutine[Any, Any, None]]") -> None:
        """Copy bytes between our end of a pipe and the other machine; our end is closed afterwards."""
        if self._missing is not None:
            os.close(fd)
            return
        self._begin(name, work(name, fd))
        # Not in the coroutine itself: a task that is cancelled before it ran would never reach it.
        self._tasks[name].add_done_callback(lambda _: os.close(fd))

    def _order(self, name: str, *given: Any) -> None:
        if self.ended is None:
            self._orders.put_nowait((name, given))

    async def _send_orders(self) -> None:
        """Send orders one after the other."""
        while True:
            name, given = await self._orders.get()
            await self._one(name, *given)

    async def _one(self, name: str, *given: Any) -> None:
        try:
            await self._there.ask(name, self._process, *given)
        except LinkError as error:
            if name == "go":
                self.has_ended(Ended(127, reason=error.message))
            else:
                log.warning("a process on another computer did not get %s: %s", name, error.message)

    async def _ask_usage(self) -> None:
        with suppress(LinkError):
            self._usage = await self._there.ask("usage", self._process)

    async def _watch(self) -> None:
        async def ended(have: int) -> int:
            async with aclosing(self._there.stream("ending", self._process)) as endings:
                async for item in endings:
                    self.has_ended(item)
            return have

        if (error := await _resumed(ended)) is not None and self.ended is None:
            self._lost = error
            self.has_ended(Ended(137, "SIGKILL", reason=error.message))

    async def _copy_output(self, name: str, fd: int) -> None:
        """Copy its output to the local pipe, with back-pressure."""

        async def print_from(have: int) -> int:
            async with aclosing(self._there.stream("output", self._process, name, have)) as pieces:
                async for piece in pieces:
                    await _write(fd, piece)
                    have += len(piece)
                    progress[0] = have
            return have

        progress = [0]
        try:
            await _resumed(print_from, progress)
        except BrokenPipeError:
            # The local reader has closed the pipe, so the output there is closed too.
            self._order("hang_up", name)

    async def _copy_input(self, _name: str, fd: int) -> None:
        at = 0
        try:
            while True:
                await anyio.wait_readable(fd)
                if not (data := os.read(fd, FED)):
                    await self._there.ask("feed", self._process, at, b"", True)
                    return
                await self._give(at, data)
                at += len(data)
        except LinkError as error:
            # Further writes to the pipe then fail with EPIPE.
            log.info("input of a process on another computer ended: %s", error.message)

    async def _give(self, at: int, data: bytes) -> None:
        """Send all of this input, repeating partial writes."""
        given = 0
        while given < len(data):
            taken = await self._there.ask("feed", self._process, at + given, data[given:])
            if not 0 <= taken <= len(data) - given:
                raise ProviderUnavailable("The other computer says it took what it was not given.")
            given += taken
            if taken == 0:
                # That machine waited already; one that does not wait must not be polled in a busy loop.
                await asyncio.sleep(_PAUSE_S)


class _RemoteCalls:
    """The calls about processes, in one scope of the other machine."""

    def __init__(self, link: Link, scope: str) -> None:
        self._link, self._scope = link, scope
        self._methods = methods_of("processes")

    async def ask(self, name: str, *given: Any) -> Any:
        method = self._methods[name]
        return await ask(self._link, self._scope, method, method.to_params(given, {}))

    def stream(self, name: str, *given: Any) -> AsyncGenerator[Any, None]:
        method = self._methods[name]
        return subscribe(self._link, self._scope, method, method.to_params(given, {}))


async def _resumed(work: Callable[[int], Awaitable[int]], progress: list[int] | None = None) -> LinkError | None:
    """Run to completion, resuming whenever the link breaks; returns the error once it cannot continue."""
    progress = [0] if progress is None else progress
    until = 0.0
    while True:
        before = progress[0]
        try:
            await work(before)
            return None
        except ProviderUnavailable as error:
            now = asyncio.get_running_loop().time()
            until = now + RESUME_S if until == 0.0 or progress[0] > before else until
            if now > until:
                return error
            await asyncio.sleep(_PAUSE_S)
        except LinkError as error:
            return error


def _refuse_what_cannot_travel(launch: Launch) -> None:
    if launch.cwd_fd is not None or launch.fds:
        raise InvalidRequest(
            "Descriptors of this computer mean nothing on another one; a program there starts in its scope."
        )
    if launch.kernel != KernelRules() or launch.wrapped or launch.gate != "self":
        raise InvalidRequest("The other computer puts its own boundary around a program; none can be sent along.")


def _pipe(*, ours_writes: bool) -> tuple[int, int]:
    """A pipe: the caller's end and ours."""
    read, write = os.pipe()
    for fd in (read, write):
        os.set_blocking(fd, False)
    return (read, write) if ours_writes else (write, read)


async def _write(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            await anyio.wait_writable(fd)
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            raise BrokenPipeError from error
