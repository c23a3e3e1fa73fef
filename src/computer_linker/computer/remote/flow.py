"""Flow: a one-way byte stream beside one call, in worker threads; a lost connection is resumed where it broke."""

import queue
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Protocol

from computer_linker.errors import Aborted, Conflict, LinkError, ProviderUnavailable
from computer_linker.model.envelope import Reply, error_in

PIECE = 1 << 20
_SIZE = struct.Struct(">I")
_TAKEN = b"\x01"
_ABORTED = 0xFFFFFFFF
_AHEAD = 4
RESUME_S = 20.0
"""How long to wait for a lost connection to be reopened."""

Progress = Callable[[int], None]


class Pipe(Protocol):
    """A blocking connection to the other side, encrypted and authenticated by the link that opened it."""

    def sendall(self, data: bytes | memoryview, /) -> None: ...

    def recv_into(self, buffer: memoryview, /) -> int: ...

    def shutdown(self, how: int, /) -> None: ...

    def close(self) -> None: ...


Connect = Callable[[int, float], tuple[Pipe, int]]
"""Opens a connection: takes the number of bytes we have and a timeout, returns it with the number the peer has."""


class Flow:
    """One side of a stream. It buffers a few pieces, whatever the length; the slower side sets the pace."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._connect: Connect | None = None
        self._ready = threading.Event()
        self._pipe: Pipe | None = None
        self._failed: LinkError | None = None
        self._progress = progress or _no_progress
        self.size = 0
        """The number of bytes transferred."""

    def carried_by(self, connect: Connect) -> None:
        """Set the function that opens its connections."""
        self._connect = connect
        self._ready.set()

    async def until(self, call: Awaitable[Reply]) -> Reply:
        """Await the reply of its call, and end the stream with it: waiters get an error."""
        try:
            reply = await call
            if not reply.ok:
                self.fail(error_in(reply.envelope))
            return reply
        except LinkError as error:
            self.fail(error)
            raise
        finally:
            self.fail(Aborted("The call was stopped."))

    def fail(self, error: LinkError) -> None:
        """End the stream with this error for every waiter."""
        self._failed = self._failed or error
        self._ready.set()
        if (pipe := self._pipe) is not None:
            with suppress(OSError):
                # Shut down, not closed: a thread may be blocked in it, and only this wakes it.
                pipe.shutdown(2)

    def pieces(self) -> Iterator[bytes]:
        """The bytes from the other side, to the end. Raises when the stream ends early: then nothing of it may be used.

        A second thread reads a few pieces ahead, so that decrypting one and writing another run in parallel.
        """
        ahead: queue.Queue[bytes | BaseException | None] = queue.Queue(_AHEAD)
        left = threading.Event()
        threading.Thread(target=self._read_ahead, args=(ahead, left), name="flow", daemon=True).start()
        try:
            while (piece := ahead.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            left.set()

    def _read_ahead(self, ahead: "queue.Queue[bytes | BaseException | None]", left: threading.Event) -> None:
        def put(item: bytes | BaseException | None) -> None:
            while not left.is_set():
                with suppress(queue.Full):
                    ahead.put(item, timeout=0.2)
                    return
            raise Aborted("The other side takes no more.")

        try:
            for piece in self._arriving():
                put(piece)
            put(None)
        except Exception as error:
            # Raised where the pieces are consumed; this thread cannot report it.
            with suppress(Aborted):
                put(error)

    def _arriving(self) -> Iterator[bytes]:
        buffer = memoryview(bytearray(PIECE))
        while True:
            pipe, _ = self._opened()
            try:
                while size := _read_size(pipe):
                    _read(pipe, buffer[:size])
                    self._passed(size)
                    yield bytes(buffer[:size])
                pipe.sendall(_TAKEN)
                return
            except OSError:
                self._lost(pipe)
            finally:
                pipe.close()

    def send(self, source: Callable[[int], Iterator[bytes]]) -> int:
        """Send everything `source` yields from an offset on; returns the number of bytes once the other side has them."""
        while True:
            pipe, start = self._opened()
            self.size = start
            try:
                for piece in source(start):
                    pipe.sendall(_SIZE.pack(len(piece)))
                    pipe.sendall(piece)
                    self._passed(len(piece))
                pipe.sendall(_SIZE.pack(0))
                _read(pipe, memoryview(bytearray(1)))
                return self.size
            except LinkError:
                _abort(pipe)
                raise
            except OSError:
                self._lost(pipe)
            finally:
                pipe.close()

    def _passed(self, size: int) -> None:
        if self._failed is not None:
            raise self._failed
        self.size += size
        self._progress(self.size)

    def _opened(self) -> tuple[Pipe, int]:
        until = time.monotonic() + RESUME_S
        self._ready.wait(RESUME_S)
        while True:
            if self._failed is not None:
                raise self._failed
            if self._connect is None or time.monotonic() >= until:
                raise ProviderUnavailable(
                    "The other computer was lost while bytes were on their way.", received=self.size
                )
            try:
                self._pipe, there = self._connect(self.size, until - time.monotonic())
                return self._pipe, there
            except OSError:
                time.sleep(0.1)

    def _lost(self, pipe: Pipe) -> None:
        self._pipe = None
        if self._failed is not None:
            raise self._failed


def _read_size(pipe: Pipe) -> int:
    head = bytearray(_SIZE.size)
    _read(pipe, memoryview(head))
    size: int = _SIZE.unpack(head)[0]
    if size == _ABORTED:
        raise Conflict("The other computer gave up: what it was sending changed meanwhile, or it was stopped.")
    if size > PIECE:
        raise Aborted("The other computer sends more at once than was agreed.")
    return size


def _read(pipe: Pipe, into: memoryview) -> None:
    while into:
        count = pipe.recv_into(into)
        if count == 0:
            raise ConnectionError("the stream ended early")
        into = into[count:]


def _abort(pipe: Pipe) -> None:
    try:
        pipe.sendall(_SIZE.pack(_ABORTED))
    except OSError:
        # The other side sees a lost connection instead, with the same effect.
        return


def _no_progress(_size: int) -> None:
    return None
