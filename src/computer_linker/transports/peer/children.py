"""Processes that a paired machine started by facet calls: under the rules and sandbox of any command."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import anyio

from computer_linker.computer.facets.processes import Child, Ended, PtySize, SignalName, Usage
from computer_linker.computer.remote.methods import FED, RESUME_S, FarLaunch, OutputName, Spawned
from computer_linker.errors import Conflict, InvalidRequest, LimitExceeded, LinkError, NotFound, ProcessNotFound
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import is_of
from computer_linker.model.scope import Scope
from computer_linker.policy.engine import find_scope
from computer_linker.providers.processes.prepare import Preparation, Prepared
from computer_linker.providers.processes.request import request_of
from computer_linker.providers.processes.runner import SIGNALS, Runner
from computer_linker.registry.context import Context
from computer_linker.services import Services

_PIECE = 16_384
_KEPT = 65
"""Pieces that a caller may request again: a window of a stream, and the one that was being sent."""
_MAX_HELD = 16
"""Of one paired machine at a time."""
_MAX_ENV = 64
_UNWATCHED_S = RESUME_S + 10
"""How long a process runs without a watcher: a little more than a broken link takes to resume."""
_TAKES_S = 10.0


class Outlet:
    """One output of a process, read only as fast as its caller reads it, and from the caller's offset."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._kept: deque[bytes] = deque(maxlen=_KEPT)
        self._read_to = 0
        self._turn = 0
        self._reading = asyncio.Lock()

    async def pieces(self, have: int) -> AsyncIterator[bytes]:
        """The output from byte `have` on. A later reader replaces an earlier one, whose link may be dead."""
        self._turn += 1
        turn, at = self._turn, have
        if not self._read_to - sum(map(len, self._kept)) <= have <= self._read_to:
            raise Conflict("That part of the output is not kept.", have=have)
        while turn == self._turn:
            if at < self._read_to:
                piece = self._from(at)
                at += len(piece)
                yield piece
            elif self._fd < 0:
                return
            else:
                await self._more(at)

    def close(self) -> None:
        """Stop reading."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            anyio.notify_closing(fd)
            os.close(fd)

    async def _more(self, at: int) -> None:
        async with self._reading:
            fd = self._fd
            if at < self._read_to or fd < 0:
                return
            try:
                await anyio.wait_readable(fd)
                piece = os.read(fd, _PIECE) if self._fd == fd else b""
            except BlockingIOError:
                return
            except (OSError, anyio.ClosedResourceError):
                # Reading a terminal fails with EIO when the last process has closed it.
                piece = b""
            if not piece:
                self.close()
            else:
                self._kept.append(piece)
                self._read_to += len(piece)

    def _from(self, at: int) -> bytes:
        start = self._read_to
        for piece in reversed(self._kept):
            start -= len(piece)
            if start <= at:
                return piece[at - start :]
        raise Conflict("That part of the output is not kept.", have=at)


@dataclass(slots=True)
class Held:
    """One process of a caller."""

    owner: tuple[str, str]
    child: Child
    prepared: Prepared
    outlets: dict[str, Outlet]
    feeding: asyncio.Lock = field(default_factory=asyncio.Lock)
    fed: int = 0
    watchers: int = 0
    timer: asyncio.TimerHandle | None = None
    limit: asyncio.TimerHandle | None = None
    before_start: Callable[[], Awaitable[None]] | None = None
    """Raises when the command, or what allows it, is no longer what it was at `spawn`."""

    def close(self) -> None:
        """Kill the process and release its resources."""
        self.child.kill()
        for timer in (self.timer, self.limit):
            if timer is not None:
                timer.cancel()
        for outlet in self.outlets.values():
            outlet.close()
        self.end_input()
        self.prepared.plan.release()

    def end_input(self) -> None:
        """Close its standard input."""
        fd, self.child.stdin = self.child.stdin, None
        if fd is not None:
            # A pending writer must not find another file under its descriptor number.
            anyio.notify_closing(fd)
            os.close(fd)


class PeerChildren:
    """The registry of processes of paired machines. One without a watcher is killed after a timeout."""

    def __init__(self, unwatched_s: float = _UNWATCHED_S) -> None:
        self._held: dict[str, Held] = {}
        self._unwatched_s = unwatched_s

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls()

    def is_busy(self) -> bool:
        return bool(self._held)

    async def aclose(self) -> None:
        for process in list(self._held):
            self._drop(process)

    def refuse_too_many(self, principal: str) -> None:
        """Raise when this caller has reached its limit."""
        if sum(held.owner[0] == principal for held in self._held.values()) >= _MAX_HELD:
            raise LimitExceeded(f"{_MAX_HELD} processes of this computer run here already.", limit=_MAX_HELD)

    def hold(self, owner: tuple[str, str], child: Child, prepared: Prepared, max_runtime_s: float) -> str:
        """Store a process that waits at its gate; returns its handle."""
        outlets = {"stdout": Outlet(child.stdout)}
        if child.stderr is not None:
            outlets["stderr"] = Outlet(child.stderr)
        process, held = new_handle("proc"), Held(owner, child, prepared, outlets)
        self._held[process] = held
        held.limit = asyncio.get_running_loop().call_later(max_runtime_s, child.kill)
        child.when_ended(lambda _: prepared.plan.release())
        self._unwatched(process, held)
        return process

    def find(self, process: str, owner: tuple[str, str]) -> Held:
        """The process of this handle, if it is this caller's in this scope."""
        held = self._held.get(process)
        if held is None or held.owner != owner:
            raise ProcessNotFound("There is no such process in this scope.")
        return held

    @contextmanager
    def watching(self, process: str, owner: tuple[str, str]) -> Iterator[Held]:
        """Keep the process alive while the context is open."""
        held = self.find(process, owner)
        held.watchers += 1
        if held.timer is not None:
            held.timer.cancel()
        try:
            yield held
        finally:
            held.watchers -= 1
            if held.watchers == 0 and self._held.get(process) is held:
                self._unwatched(process, held)

    async def end_of(self, principal: str | None) -> int:
        """Stop the processes of one caller, or of all; returns how many ran."""
        theirs = [process for process, held in self._held.items() if is_of(held.owner[0], principal)]
        for process in theirs:
            self._drop(process)
        return len(theirs)

    def _unwatched(self, process: str, held: Held) -> None:
        held.timer = asyncio.get_running_loop().call_later(self._unwatched_s, self._drop, process)

    def _drop(self, process: str) -> None:
        self._held.pop(process).close()


class ProcessesHere:
    """The process facet for one call of a paired machine; each call was authorized by the scope it names."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._children = ctx.use(PeerChildren)
        self._owner = (ctx.principal.id, ctx.scope.id)

    async def spawn(self, launch: FarLaunch) -> Spawned:
        ctx = self._ctx
        if len(launch.env) > _MAX_ENV:
            raise InvalidRequest(f"At most {_MAX_ENV} variables can be set.", field="env")
        _check_size(launch.pty)
        self._children.refuse_too_many(ctx.principal.id)
        request = request_of(ctx, ".", list(launch.argv), launch.env, pty=launch.pty is not None)
        try:
            prepared = await ctx.use(Preparation).prepare(request)
        except NotFound as error:
            if "program" not in error.details:
                raise
            return Spawned("", 0, missing=error.message)
        return await self._spawned(launch, prepared)

    async def _spawned(self, launch: FarLaunch, prepared: Prepared) -> Spawned:
        ctx = self._ctx
        ctx.boundary = prepared.boundary
        ctx.note(program=prepared.program, arguments=len(prepared.argv) - 1)
        try:
            await ctx.durable_intent()
            child = await ctx.use(Runner).spawn(
                prepared.plan, prepared.env, stdin=launch.stdin == "pipe", pty=launch.pty
            )
        except BaseException:
            prepared.plan.release()
            raise
        process = self._children.hold(self._owner, child, prepared, ctx.scope.policy.max_runtime_seconds)
        self._find(process).before_start = partial(_start_as_judged, ctx, ctx.scope)
        ctx.note(processId=process)
        return Spawned(process, child.pid)

    async def go(self, process: str) -> None:
        held = self._find(process)
        try:
            # The caller chooses when this arrives: what a person saw of the command must hold now, not only at `spawn`.
            if held.before_start is not None:
                await held.before_start()
        except LinkError:
            held.child.kill()
            raise
        held.child.go()

    async def feed(self, process: str, at: int, data: bytes, is_last: bool = False) -> int:
        held = self._find(process)
        if len(data) > FED:
            raise InvalidRequest(f"At most {FED} bytes are fed at once.", field="data")
        await self._ctx.durable_intent()
        async with held.feeding:
            stdin, known = held.child.stdin, held.fed - at
            # Data repeated after a broken link was already written, up to where the process had read.
            if not 0 <= known <= len(data) or (stdin is None and not is_last):
                raise Conflict("The process takes no such input now.", fed=held.fed)
            left = data[known:]
            taken = await _write_input(stdin, left) if left and stdin is not None else 0
            held.fed += taken
            self._ctx.note(bytes=taken)
            if is_last and taken == len(left):
                held.end_input()
        return known + taken

    async def signal(self, process: str, name: SignalName) -> None:
        held = self._find(process)
        await self._ctx.durable_intent()
        held.child.signal(name)

    async def kill(self, process: str) -> None:
        held = self._find(process)
        await self._ctx.durable_intent()
        held.child.kill()

    async def hang_up(self, process: str, name: OutputName) -> None:
        held = self._find(process)
        await self._ctx.durable_intent()
        if name in held.outlets:
            held.outlets[name].close()

    async def resize(self, process: str, size: PtySize) -> None:
        held = self._find(process)
        _check_size(size)
        await self._ctx.durable_intent()
        held.child.resize(size)

    async def usage(self, process: str) -> Usage | None:
        return self._find(process).child.usage()

    async def output(self, process: str, name: OutputName, have: int) -> AsyncIterator[bytes]:
        with self._children.watching(process, self._owner) as held:
            outlet = held.outlets.get(name)
            if outlet is None:
                raise InvalidRequest("A terminal has one output.", field="name")
            async for piece in outlet.pieces(have):
                yield piece

    async def ending(self, process: str) -> AsyncIterator[Ended]:
        with self._children.watching(process, self._owner) as held:
            ended = await held.child.wait()
            # A sandbox program passes on the signal that ended its command as an exit code.
            is_exit_code = ended.signal is not None or not held.prepared.plan.wrapped
            yield ended if is_exit_code else replace(ended, signal=SIGNALS.get(ended.exit_code))

    def _find(self, process: str) -> Held:
        return self._children.find(process, self._owner)


async def _start_as_judged(ctx: Context, scope: Scope) -> None:
    """Raise where the program was judged and its sandbox was made under other rules of the scope, or a yes no longer holds."""
    await ctx.durable_intent()
    if find_scope(ctx.services.current_config, scope.id, ctx.principal) != scope:
        raise Conflict(f"The rules of scope {scope.id} changed before the program started. Start it anew.")


async def _write_input(fd: int, data: bytes) -> int:
    """Write to a process's input; returns how much it accepted in time."""
    with anyio.move_on_after(_TAKES_S), suppress(anyio.ClosedResourceError):
        while True:
            try:
                return os.write(fd, data)
            except BlockingIOError:
                await anyio.wait_writable(fd)
            except OSError as error:
                raise Conflict("The process takes no more input.") from error
    return 0


def _check_size(size: PtySize | None) -> None:
    if size is not None and not (0 < size.cols <= 1000 and 0 < size.rows <= 1000):
        raise InvalidRequest("A terminal has 1 to 1000 columns and rows.", field="pty")
