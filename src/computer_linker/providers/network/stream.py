"""A connected socket with a buffer: read up to a mark, an exact number of bytes, or pour everything on."""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

_HEAD_PIECE = 8192
_PIECE = 65_536
_MAX_PIECE = 1_048_576
IDLE_S = 300.0


class Ended(Exception):
    """The other side ended the connection within a message, or sent more than fits."""


class Stream:
    """One side of a connection. The socket becomes non-blocking and belongs to the stream."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.held = bytearray()
        """Read and not taken yet."""
        self._loop = asyncio.get_running_loop()

    async def read_into(self, room: memoryview) -> int:
        """Read at least one byte; 0 at the end."""
        return await self._loop.sock_recv_into(self.sock, room)

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        await self._loop.sock_sendall(self.sock, data)

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
        if hasattr(socket, "TCP_QUICKACK"):
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def reset(self) -> None:
        """Close the connection so that the other side sees an error, not an end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        self.sock.close()


async def pour(
    source: Stream,
    sink: Stream,
    count: int | None = None,
    counted: Callable[[int], None] = lambda _count: None,
    *,
    idle_s: float | None = IDLE_S,
) -> None:
    """Send on `count` bytes, or all up to the end. Raises Ended when there are fewer."""
    left = count
    if source.held:
        first = source.take(len(source.held) if left is None else left)
        left = None if left is None else left - len(first)
        counted(len(first))
        await sink.send(first)
    room = memoryview(bytearray(_PIECE))
    while left is None or left > 0:
        async with asyncio.timeout(idle_s):
            size = await source.read_into(room if left is None else room[:left])
        if size == 0:
            break
        left = None if left is None else left - size
        counted(size)
        await sink.send(room[:size])
        if size == len(room) < _MAX_PIECE:
            room = memoryview(bytearray(2 * size))
    if left:
        raise Ended


async def join(
    one: Stream,
    other: Stream,
    sent: Callable[[int], None],
    received: Callable[[int], None],
    idle_s: float = IDLE_S,
) -> None:
    """Pour in both directions until both have ended, one has failed, or nothing has moved for long."""

    async def direction(source: Stream, sink: Stream, counted: Callable[[int], None]) -> None:
        await pour(source, sink, None, counted, idle_s=None)
        await sink.finish()

    moved = 0

    def counting(counted: Callable[[int], None]) -> Callable[[int], None]:
        def count(size: int) -> None:
            nonlocal moved
            moved += size
            counted(size)

        return count

    both = [
        asyncio.ensure_future(direction(one, other, counting(sent))),
        asyncio.ensure_future(direction(other, one, counting(received))),
    ]
    try:
        seen = -1
        while seen != moved:
            # One direction may be silent for hours while the other carries a large file.
            seen = moved
            done, pending = await asyncio.wait(both, timeout=idle_s, return_when=asyncio.FIRST_EXCEPTION)
            if not pending or any(each.exception() for each in done):
                break
    finally:
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)
