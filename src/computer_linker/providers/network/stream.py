"""A connected socket with a buffer: read up to a mark, or an exact number of bytes."""

import asyncio
import math
import os
import socket
import struct
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context

_INTERNET = (socket.AF_INET, socket.AF_INET6)
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
_HEAD_PIECE = 8192
_splice: Callable[..., int] = getattr(os, "splice", lambda *_, **__: 0)
_MOVE = 1 | 2
"""Without a copy, and without waiting: SPLICE_F_MOVE and SPLICE_F_NONBLOCK, which Python has no names for."""
_NOTHING = memoryview(bytearray())
IDLE_S = 300.0


class Ended(Exception):
    """The other side ended the connection within a message, or sent more than fits."""


class Limit:
    """Cancels what serves a connection once its time is over. To set another time costs nothing, unlike `asyncio.timeout`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._is_over = False

    def set(self, seconds: float | None) -> None:
        """Let it take this long from now; None for as long as it likes."""
        self._until = math.inf if seconds is None else self._loop.time() + seconds
        if self._timer is None and seconds is not None and self._task is not None:
            self._timer = self._loop.call_at(self._until, self._look)
        elif self._timer is not None and self._until < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(self._until, self._look)

    def later(self, seconds: float) -> None:
        """As `set`, from another thread: a time that is earlier than the timer's takes effect up to `IDLE_S` late."""
        self._until = self._loop.time() + seconds

    @contextmanager
    def held(self) -> Iterator[None]:
        """Apply to the running task. Raises TimeoutError when the time is over."""
        self._task = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            if not self._is_over or self._task is None or self._task.uncancel():
                raise
            raise TimeoutError from None
        finally:
            self._task = None
            if self._timer is not None:
                self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        if self._loop.time() >= self._until and self._task is not None:
            self._is_over = True
            self._task.cancel()
        elif self._until < math.inf:
            self._timer = self._loop.call_at(min(self._until, self._loop.time() + IDLE_S), self._look)


class _Arrival:
    """What a read waits for. It continues its task as soon as bytes are there; a Future would take another turn of the loop.

    Awaited as any other object that is compatible with a Future (`asyncio.isfuture`). Only the loop itself may settle it.
    """

    __slots__ = ("_asyncio_future_blocking", "_callback", "_context", "_count", "_error", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._asyncio_future_blocking = False
        self._count: int | None = None
        self._error: BaseException | None = None
        self._callback: Callable[[_Arrival], object] | None = None
        self._context: Context | None = None

    def __await__(self) -> "Generator[_Arrival, None, int]":
        self._asyncio_future_blocking = True
        yield self
        return self.result()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, callback: "Callable[[_Arrival], object]", *, context: Context) -> None:
        self._callback, self._context = callback, context

    def done(self) -> bool:
        return self._count is not None or self._error is not None

    def result(self) -> int:
        if self._error is not None:
            raise self._error
        assert self._count is not None
        return self._count

    def settle(self, count: int | None, error: OSError | None = None) -> None:
        """Continue the task that waits. Called by the loop, while no task runs."""
        self._count, self._error = count, error
        if self._callback is not None and self._context is not None:
            self._context.run(self._callback, self)

    def cancel(self, msg: object = None) -> bool:
        """Called while another task may run, so that it takes effect in the loop's next turn."""
        if self.done():
            return False
        self._error = asyncio.CancelledError()
        if self._callback is not None:
            self._loop.call_soon(self._callback, self, context=self._context)
        return True


class Stream:
    """One side of a connection. The socket becomes non-blocking and belongs to the stream."""

    can_splice = hasattr(os, "splice")
    """The kernel can move its bytes to another socket."""

    def __init__(self, sock: socket.socket, limit: Limit | None = None) -> None:
        sock.setblocking(False)
        if sock.family in _INTERNET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.held = bytearray()
        """Read and not taken yet."""
        self.limit = Limit() if limit is None else limit
        self._loop = asyncio.get_running_loop()
        self._waiter: _Arrival | None = None
        self._room = memoryview(b"")
        self._is_watched = False

    async def read_into(self, room: memoryview) -> int:
        """Read at least one byte; 0 at the end."""
        return await self._received(room)

    async def _received(self, room: memoryview) -> int:
        """Receive from the socket. The loop goes on watching it afterwards: to begin and end that costs more than to read."""
        try:
            return self.sock.recv_into(room)
        except BlockingIOError:
            return await self._arrived(room)

    async def _arrived(self, room: memoryview) -> int:
        waiter = self._waiter = _Arrival(self._loop)
        self._room = room
        if not self._is_watched:
            # By number: to look a socket up by itself makes a text of it.
            self._loop.add_reader(self.sock.fileno(), self._readable)
            self._is_watched = True
        try:
            return await waiter
        finally:
            self._waiter = None

    async def spliced_into(self, pipe: int, count: int) -> int:
        """Move at least one byte into a pipe, without a copy of it; 0 at the end."""
        while True:
            try:
                return _splice(self.sock.fileno(), pipe, count, flags=_MOVE)
            except BlockingIOError:
                await self._arrived(_NOTHING)

    async def spliced_from(self, pipe: int, count: int) -> None:
        """Send what a pipe has."""
        while count:
            try:
                count -= _splice(pipe, self.sock.fileno(), count, flags=_MOVE)
            except BlockingIOError:
                await self._writable()

    async def _writable(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(self.sock.fileno(), _settle, waiter)
        try:
            await waiter
        finally:
            self._loop.remove_writer(self.sock.fileno())

    def _readable(self) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            # Nothing is wanted now; otherwise the loop would come back at once, again and again.
            self._unwatch()
            return
        try:
            count = self.sock.recv_into(self._room)
        except BlockingIOError:
            return
        except OSError as error:
            waiter.settle(None, error)
        else:
            waiter.settle(count)

    def _unwatch(self) -> None:
        if self._is_watched:
            self._loop.remove_reader(self.sock.fileno())
            self._is_watched = False

    def handed_on(self) -> socket.socket:
        """The socket, for another stream that takes this one's place."""
        self._unwatch()
        return self.sock

    def has_more(self) -> bool:
        """Read what is here already into `held`; False when that is nothing."""
        try:
            piece = self.sock.recv(_HEAD_PIECE)
        except BlockingIOError:
            return False
        self.held += piece
        return bool(piece)

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        try:
            count = self.sock.send(data)
        except BlockingIOError:
            count = 0
        if count < len(data):
            await self._loop.sock_sendall(self.sock, memoryview(data)[count:])

    async def finish(self) -> None:
        """Tell the other side that nothing more comes."""
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    async def more(self) -> bool:
        """Read some bytes into `held`; False at the end."""
        room = bytearray(_HEAD_PIECE)
        count = await self.read_into(memoryview(room))
        self.held += memoryview(room)[:count]
        return count > 0

    async def until(self, mark: bytes, limit: int) -> bytes:
        """Take everything up to and with the mark. Raises Ended when there is none within the limit."""
        start = 0
        while (at := self.held.find(mark, start)) < 0:
            start = max(0, len(self.held) - len(mark) + 1)
            if len(self.held) > limit or not await self.more():
                raise Ended
        if at + len(mark) > limit:
            raise Ended
        return self.take(at + len(mark))

    async def exactly(self, count: int) -> bytes:
        while len(self.held) < count:
            if not await self.more():
                raise Ended
        return self.take(count)

    def take(self, count: int) -> bytes:
        """Take up to this many held bytes."""
        taken = bytes(memoryview(self.held)[:count])
        del self.held[:count]
        return taken

    def is_quiet(self) -> bool:
        """True while the connection is open and nothing waits to be read."""
        if self.held:
            return False
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def acknowledge(self) -> None:
        """Acknowledge what comes next at once: a server that sends its head alone waits for that before the body."""
        if _QUICKACK is not None:
            self.sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    def reset(self) -> None:
        """Close the connection so that the other side sees an error, not an end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        self._unwatch()
        self.sock.close()


def _settle(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
