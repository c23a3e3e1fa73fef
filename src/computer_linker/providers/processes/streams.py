"""Reads the output of processes with bounded memory."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable

import anyio

from computer_linker.computer.facets.processes import Child, Ended
from computer_linker.system import os
from computer_linker.vault.mask import Mask, MaskedStream

_CHUNK = 1 << 20
_buffer: bytearray | None = None
_FLOOD_S = 0.0001
_PAUSE_S = 0.00005
"""How long to let a program print more before reading: a wake-up costs both sides more than the bytes do."""
TICK_S = 0.1
"""The end of a stream that is masked waits for more, from one such time to two."""
_DRAIN_S = 0.25
"""How long to wait for the end of the output once the process has ended: an orphan may hold the pipe."""


class HeadTail:
    """Keeps the first and the last part of a stream, and counts what lies between."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit // 2
        self._tail_limit = limit - limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, data: memoryview) -> None:
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if len(data) >= self._tail_limit:
            self._tail[:] = data[len(data) - self._tail_limit :]
        elif data:
            self._tail += data
            # Trimmed only now and then, so that many small pieces stay cheap.
            if len(self._tail) > 2 * self._tail_limit:
                del self._tail[: len(self._tail) - self._tail_limit]

    def kept(self) -> int:
        """How many bytes are stored."""
        return len(self._head) + min(len(self._tail), self._tail_limit)

    def last_line(self) -> str:
        """The newest non-empty line, for progress."""
        recent = bytes((self._tail or self._head)[-400:]).decode("utf-8", errors="replace")
        lines = [line.strip() for line in recent.splitlines() if line.strip()]
        return lines[-1][:200] if lines else ""

    def text(self, limit: int) -> tuple[str, bool]:
        """The text within `limit` bytes, and whether something was left out. No character is ever split."""
        head, tail = bytes(self._head), bytes(self._tail[-self._tail_limit :]) if self._tail else b""
        missing = self.total - len(head) - len(tail)
        if missing == 0 and self.total <= limit:
            return (head + tail).decode("utf-8", errors="replace"), False
        whole = head + tail if missing == 0 else b""
        head = _cut_end((whole or head)[: limit // 2])
        tail = _cut_start((whole or tail)[-(limit - limit // 2) :])
        missing = self.total - len(head) - len(tail)
        note = f"\n[… {missing} bytes left out …]\n"
        return head.decode("utf-8", errors="replace") + note + tail.decode("utf-8", errors="replace"), True


class Pump:
    """Copies a descriptor's data to a sink on the event loop; closes the descriptor at its end."""

    def __init__(
        self,
        fd: int,
        sink: Callable[[memoryview], None],
        on_end: Callable[[], None] | None = None,
        mask: Mask | None = None,
    ) -> None:
        self._fd = fd
        self._masked = MaskedSink(sink, mask) if mask else None
        self._sink = sink if self._masked is None else self._masked.feed
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._read_at = 0.0
        self._is_watched = True
        try:
            self._loop.add_reader(fd, self._read)
        except NotImplementedError:
            # The event loop of Windows cannot watch pipes, so a thread reads this one.
            self._is_watched = False
            threading.Thread(target=self._read_aside, args=(fd,), daemon=True).start()

    @property
    def is_closed(self) -> bool:
        return self._fd < 0

    async def ended(self) -> None:
        """Return at the end of the output."""
        await asyncio.shield(self._ended)

    def close(self) -> None:
        """Stop reading."""
        if self._fd >= 0:
            if self._is_watched:
                self._loop.remove_reader(self._fd)
                os.close(self._fd)
            self._fd = -1
            if self._masked is not None:
                self._masked.finish()
            if not self._ended.done():
                self._ended.set_result(None)
            if self._on_end is not None:
                self._on_end()

    def _read(self) -> None:
        global _buffer
        if _buffer is None:
            _buffer = bytearray(_CHUNK)
        view = memoryview(_buffer)
        if time.monotonic() - self._read_at < _FLOOD_S:
            time.sleep(_PAUSE_S)
        try:
            count = os.readv(self._fd, [view])
        except BlockingIOError:
            return
        except OSError:
            # A pty's master fails like this when the last process has closed the other end.
            count = 0
        if count == 0:
            self.close()
        else:
            self._sink(view[:count])
            # A pipe that was nearly full needs no time to fill.
            self._read_at = time.monotonic() if count < _CHUNK // 2 else 0.0

    def _read_aside(self, fd: int) -> None:
        """Read in a separate thread, one chunk at a time, waiting until each was consumed."""
        data = b"x"
        while data and self._fd >= 0:
            try:
                data = os.read(fd, _CHUNK)
            except OSError:
                data = b""
            taken = threading.Event()
            try:
                self._loop.call_soon_threadsafe(self._take, data, taken)
            except RuntimeError:
                # The event loop has ended, and its readers with it.
                break
            taken.wait()
        os.close(fd)

    def _take(self, data: bytes, taken: threading.Event) -> None:
        if data and self._fd >= 0:
            self._sink(memoryview(data))
        elif not data:
            self.close()
        taken.set()


class MaskedSink:
    """Masks the stored secrets in a stream before it is kept. Its end waits a moment for more, whatever it is."""

    def __init__(self, sink: Callable[[memoryview], None], mask: Mask) -> None:
        self._sink = sink
        self._stream = MaskedStream(mask)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, data: memoryview) -> None:
        self._pass(self._stream.feed(bytes(data)))
        self._wait()

    def finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pass(self._stream.finish())

    def _wait(self) -> None:
        if self._timer is None and self._stream.holds:
            self._timer = self._loop.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._pass(self._stream.tick())
        self._wait()

    def _pass(self, shown: bytes) -> None:
        if shown:
            self._sink(memoryview(shown))


class Feed:
    """Writes text to a process's input as fast as it takes it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting = bytearray()
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self._listens = False

    @property
    def is_open(self) -> bool:
        return self._fd >= 0 and not self._closing

    @property
    def pending(self) -> int:
        return len(self._waiting)

    def write(self, data: bytes) -> None:
        if self._fd >= 0:
            self._waiting += data
            self._push()

    def finish(self) -> None:
        """Close the input once everything is written."""
        self._closing = True
        self._push()

    def close(self) -> None:
        if self._fd >= 0:
            if self._listens:
                self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._waiting.clear()

    def _push(self) -> None:
        try:
            while self._waiting and self._fd >= 0:
                del self._waiting[: os.write(self._fd, self._waiting)]
        except BlockingIOError:
            if not self._listens:
                self._listens = True
                self._loop.add_writer(self._fd, self._push)
            return
        except OSError:
            self.close()
            return
        if self._listens and self._fd >= 0:
            self._listens = False
            self._loop.remove_writer(self._fd)
        if self._closing:
            self.close()


async def collect(child: Child, limit: int) -> tuple[bytes, bytes, Ended]:
    """Everything a small, trusted program prints, up to `limit` bytes a stream; killed on cancellation."""
    out, err = HeadTail(2 * limit), HeadTail(2 * limit)
    pumps = [Pump(child.stdout, out.feed)]
    if child.stderr is not None:
        pumps.append(Pump(child.stderr, err.feed))
    try:
        ended = await child.wait()
        await drained(pumps)
    finally:
        child.kill()
        for pump in pumps:
            pump.close()
    return bytes(out._head), bytes(err._head), ended


async def drained(pumps: list[Pump]) -> None:
    """Wait a moment for the end of the output of a process that has ended."""
    if all(pump.is_closed for pump in pumps):
        return
    with anyio.move_on_after(_DRAIN_S):
        for pump in pumps:
            await pump.ended()


def close_streams(pumps: list[Pump], feed: Feed | None, stdin: int | None) -> None:
    """Close a process's pipes, its input included."""
    for pump in pumps:
        pump.close()
    if feed is not None:
        feed.close()
    else:
        close_quietly(stdin)


def whole_characters(data: bytes) -> int:
    """How many bytes of `data` end on a whole UTF-8 character."""
    return len(_cut_end(data))


def _cut_end(data: bytes) -> bytes:
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            size = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return data if size <= back else data[:-back]
    return data


def _cut_start(data: bytes) -> bytes:
    for at in range(min(4, len(data))):
        if data[at] & 0xC0 != 0x80:
            return data[at:]
    return data


def close_quietly(fd: int | None) -> None:
    """Close a descriptor that may be closed already."""
    if fd is not None:
        with contextlib.suppress(OSError):
            os.close(fd)
