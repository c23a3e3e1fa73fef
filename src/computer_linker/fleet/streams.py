"""Byte streams of calls through the fleet's server: signed, ordered chunks with a flow-control window."""

import asyncio
import queue
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import msgpack
from nats.aio.msg import Msg

from computer_linker.computer.remote.flow import PIECE, Connect, Flow, Pipe
from computer_linker.errors import Aborted, InvalidRequest, LimitExceeded, LinkError, PermissionDenied
from computer_linker.fleet import messages
from computer_linker.fleet.link import FleetLink
from computer_linker.fleet.messages import FlowBody, FlowKind, parsed
from computer_linker.fleet.seal import Signer, opened, unpacked

WINDOW = 4 << 20
"""The flow-control window: bytes sent and not yet acknowledged."""
CHUNK = 512 * 1024
_ROOM = 4096
"""Bytes of the server's message limit reserved for signature, certificate and subject."""
_MAX_STREAMS = 8
_SILENT_S = 15.0
"""How long the other side may be silent before the connection counts as lost."""
_PUBLISH_S = 10.0
_FIRST_ASK_S, _ASK_S = 0.05, 1.0


@dataclass(frozen=True, slots=True)
class Ends:
    """The endpoints of a stream: our key, the peer's key and the peer's subject."""

    signer: Signer
    other: str
    subject: str
    handle: str


class Streams:
    """The streams of one hub or machine, by the handle that their signed call carries."""

    def __init__(self, signer: Signer, seat: str, refuse: Callable[[LinkError], None]) -> None:
        self._signer, self._seat, self._refuse = signer, seat, refuse
        self._open: dict[str, _Stream] = {}

    @property
    def subject(self) -> str:
        """The subject to subscribe to."""
        return messages.every_flow(self._seat)

    async def take(self, raw: Msg) -> None:
        """Queue one message; the worker thread of its stream verifies it."""
        stream = self._open.get(raw.subject.rpartition(".")[2])
        if stream is not None:
            stream.take(raw.data)

    def again(self) -> None:
        """Resume all streams after a reconnect, because messages in flight may be lost."""
        for stream in self._open.values():
            stream.wake()

    @contextmanager
    def dialling(self, link: FleetLink, handle: str, other: str, seat: str) -> Iterator[Connect]:
        """The calling side of a stream, while the body runs."""
        with self._opened(link, handle, other, seat) as stream:
            yield stream.dial

    @contextmanager
    def expected(self, link: FleetLink, handle: str, other: str, seat: str) -> Iterator[Flow]:
        """A flow from the peer with this key and handle, while the context is open."""
        with self._opened(link, handle, other, seat) as stream:
            flow = Flow()
            flow.carried_by(stream.accept)
            try:
                yield flow
            finally:
                flow.fail(Aborted("The call ended."))

    @contextmanager
    def _opened(self, link: FleetLink, handle: str, other: str, seat: str) -> Iterator["_Stream"]:
        if handle in self._open:
            raise InvalidRequest("That stream is there already.", rule="replayed")
        if len(self._open) >= _MAX_STREAMS:
            raise LimitExceeded(
                "Too many files are on their way through the fleet; try again later.", limit=_MAX_STREAMS
            )
        ends = Ends(self._signer, other, messages.flow(seat, self._seat, handle), handle)
        stream = self._open[handle] = _Stream(ends, link, self._refuse)
        try:
            yield stream
        finally:
            del self._open[handle]
            stream.close()


class _Stream:
    """One side of one stream: an inbox that the event loop fills; the rest runs in the one thread that waits on it."""

    def __init__(self, ends: Ends, link: FleetLink, refuse: Callable[[LinkError], None]) -> None:
        self.ends, self._link, self._refuse = ends, link, refuse
        self._loop = asyncio.get_running_loop()
        self._inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # Each is written by one thread alone, so that no lock is needed to compute the queued bytes.
        self._came = self._gone = 0
        self._attempt = 0
        self._is_closed = False
        self._sending: Future[None] | None = None
        self.newer: FlowBody | None = None
        """Set when the other side reopened the stream while an older connection was in use."""

    def take(self, raw: bytes) -> None:
        """Queue a message for the waiting thread. Past the window it is dropped and handled as lost."""
        if self._came - self._gone + len(raw) <= 2 * WINDOW:
            self._came += len(raw)
            self._inbox.put(raw)

    def wake(self) -> None:
        """Break the current connection."""
        self._inbox.put(None)

    def close(self) -> None:
        """Close the stream and wake its waiting thread."""
        self._is_closed = True
        self.wake()

    def dial(self, have: int, within_s: float) -> tuple[Pipe, int]:
        """Send open requests until the peer answers. Raises OSError on timeout."""
        self._attempt += 1
        until, pause = time.monotonic() + within_s, _FIRST_ASK_S
        while (left := until - time.monotonic()) > 0:
            self.send("open", self._attempt, have)
            there = self._answer(min(pause, left))
            if there is not None:
                return _Pipe(self, self._attempt, have), there
            pause = min(pause * 2, _ASK_S)
        raise TimeoutError("the other side does not answer")

    def _answer(self, within_s: float) -> int | None:
        until = time.monotonic() + within_s
        with suppress(TimeoutError):
            while True:
                body = self._next_open(until)
                if body.what == "opened" and body.attempt == self._attempt:
                    return body.at
        return None

    def accept(self, have: int, within_s: float) -> tuple[Pipe, int]:
        """Wait for the peer's open request. Raises OSError on timeout."""
        until = time.monotonic() + within_s
        body, self.newer = self.newer, None
        while body is None or body.what != "open" or body.attempt <= self._attempt:
            body = self._next_open(until)
        self._attempt = body.attempt
        self.send("opened", self._attempt, have)
        return _Pipe(self, self._attempt, have), body.at

    def _next_open(self, until: float) -> FlowBody:
        while not self._is_closed:
            # A message that ends a connection while the next is being opened was meant for the previous one.
            with suppress(ConnectionError):
                return self.next(until - time.monotonic())
        raise ConnectionError("the stream has ended")

    def next(self, within_s: float) -> FlowBody:
        """Return the peer's next message; messages of others are audited and skipped."""
        until = time.monotonic() + within_s
        while True:
            try:
                raw = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise TimeoutError("the other side says nothing") from None
            if raw is None:
                raise ConnectionError("the connection was broken")
            self._gone += len(raw)
            try:
                return self._read(raw)
            except LinkError as error:
                self._loop.call_soon_threadsafe(self._refuse, error)

    def _read(self, raw: bytes) -> FlowBody:
        message = opened(raw, lambda signer: signer == self.ends.other)
        if message.kind != "flow":
            raise InvalidRequest("That message is not of a stream.", rule="malformed")
        body = parsed(FlowBody, message.body)
        if body.to != self.ends.signer.fingerprint or body.stream != self.ends.handle:
            raise PermissionDenied("This is of another stream.", rule="replayed")
        return body

    def send(self, what: FlowKind, attempt: int, at: int, data: bytes = b"") -> None:
        """Send one message, from a worker thread. Raises OSError when publishing it, or the previous one, failed."""
        body = {
            "to": self.ends.other,
            "stream": self.ends.handle,
            "attempt": attempt,
            "what": what,
            "at": at,
            "data": data,
        }
        sealed = self.ends.signer.sealed("flow", body)
        self._wait()
        self._sending = asyncio.run_coroutine_threadsafe(self._link.publish(self.ends.subject, sealed), self._loop)
        if what != "data":
            self._wait()

    def _wait(self) -> None:
        """Wait until the last message is published. For data, the next chunk is signed meanwhile."""
        sending, self._sending = self._sending, None
        if sending is None:
            return
        try:
            sending.result(_PUBLISH_S)
        except LinkError as error:
            raise ConnectionError(error.message) from error
        except TooLate:
            sending.cancel()
            raise ConnectionError("the server takes nothing") from None

    @property
    def largest(self) -> int:
        return max(1024, min(CHUNK, self._link.largest - _ROOM))


class _Pipe:
    """One connection of a stream, with the interface of a flow: blocking, ordered, and bounded by the window."""

    def __init__(self, stream: _Stream, attempt: int, have: int) -> None:
        self._stream, self._attempt, self._have = stream, attempt, have
        self._out: list[memoryview] = []
        self._waits = 0
        """The number of buffered bytes."""
        self._sent = self._taken_there = 0
        self._in = memoryview(b"")
        self._got = self._taken_here = self._acknowledged = 0
        self._is_broken = False

    def sendall(self, data: bytes | memoryview) -> None:
        """Send; blocks while the other side's window is full."""
        with self._breaking():
            self._out.append(memoryview(data))
            self._waits += len(data)
            size = self._stream.largest
            while self._waits >= size:
                self._send(self._cut(size))

    def recv_into(self, buffer: memoryview) -> int:
        """Read received bytes, and acknowledge them so that the peer's window opens."""
        with self._breaking():
            self._flush()
            while not self._in:
                self._receive(self._stream.next(_SILENT_S))
            count = min(len(buffer), len(self._in))
            buffer[:count], self._in = self._in[:count], self._in[count:]
            self._taken_here += count
            if self._taken_here - self._acknowledged >= WINDOW // 4:
                self._acknowledged = self._taken_here
                self._stream.send("taken", self._attempt, self._acknowledged)
            return count

    def shutdown(self, how: int) -> None:
        """Wake the thread that waits on it."""
        self._stream.wake()

    def close(self) -> None:
        """Send the last bytes, if the connection still works."""
        if not self._is_broken:
            with suppress(OSError), self._breaking():
                self._flush()
            self._is_broken = True

    def _flush(self) -> None:
        if self._waits:
            self._send(self._cut(self._waits))

    def _cut(self, size: int) -> bytes:
        """The next bytes to send."""
        pieces: list[memoryview] = []
        left = size
        while left:
            piece = self._out[0]
            pieces.append(piece[:left])
            self._out[0] = piece[left:]
            left -= len(pieces[-1])
            if not self._out[0]:
                del self._out[0]
        self._waits -= size
        return b"".join(pieces)

    def _send(self, piece: bytes) -> None:
        while self._sent + len(piece) - self._taken_there > WINDOW:
            self._receive(self._stream.next(_SILENT_S))
        self._stream.send("data", self._attempt, self._sent, piece)
        self._sent += len(piece)

    def _receive(self, body: FlowBody) -> None:
        if body.what == "open" and body.attempt > self._attempt:
            self._stream.newer = body
            raise ConnectionError("the other side opened it again")
        if body.attempt != self._attempt:
            return
        match body.what:
            case "data":
                self._receive_data(body)
            case "taken":
                self._taken_there = max(self._taken_there, min(body.at, self._sent))
            case "open" if not (self._got or self._sent):
                # Our answer was lost.
                self._stream.send("opened", self._attempt, self._have)
            case "lost":
                raise ConnectionError("the other side lost the connection")
            case _:
                return

    def _receive_data(self, body: FlowBody) -> None:
        if body.at < self._got:
            return
        if body.at > self._got or body.at + len(body.data) - self._acknowledged > WINDOW:
            raise ConnectionError("something was lost on the way, or more came than was agreed")
        self._got += len(body.data)
        self._in = memoryview(bytes(self._in) + body.data) if self._in else memoryview(body.data)

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """Mark a failed connection as broken and notify the peer, so that it does not wait."""
        if self._is_broken:
            raise ConnectionError("the connection was broken")
        try:
            yield
        except OSError:
            self._is_broken = True
            with suppress(OSError):
                self._stream.send("lost", self._attempt, self._got)
            raise


# Calls larger than the server's messages: the call itself streams beside a short message that announces it.

MAX_REQUEST = 9 * 1024 * 1024


class TooLarge(Exception):
    """The call exceeds the server's message size; nothing was sent."""


@asynccontextmanager
async def streamed(call: dict[str, Any]) -> AsyncIterator[Flow]:
    """A flow that carries this call while the body runs. Raises LimitExceeded for more than a machine accepts."""
    raw = bytes(msgpack.packb(call, use_bin_type=True))
    if len(raw) > MAX_REQUEST:
        raise LimitExceeded("This call is larger than a fleet carries; send less at once.", limit=MAX_REQUEST)
    flow = Flow()
    sending = asyncio.ensure_future(asyncio.to_thread(flow.send, lambda start: _pieces(raw, start)))
    try:
        yield flow
    finally:
        # The call has ended, and with it the flow: the call reports the flow's error.
        await asyncio.wait([sending])
        sending.exception()


async def received(flow: Flow) -> dict[str, Any]:
    """Read the call from a flow. Raises InvalidRequest for one that is too large or malformed."""
    call = unpacked(await asyncio.to_thread(_joined, flow))
    if type(call) is not dict:
        raise InvalidRequest("That is no call.", rule="malformed")
    return call


def _pieces(raw: bytes, start: int) -> Iterator[bytes]:
    for at in range(start, len(raw), PIECE):
        yield raw[at : at + PIECE]


def _joined(flow: Flow) -> bytes:
    raw = bytearray()
    for piece in flow.pieces():
        raw += piece
        if len(raw) > MAX_REQUEST:
            raise InvalidRequest("A request of the fleet is too large.", rule="oversized")
    return bytes(raw)
