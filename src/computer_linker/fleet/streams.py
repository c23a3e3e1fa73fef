"""Bytes beside a call, through the fleet's server: signed pieces in order, never more under way than there is room for."""

import asyncio
import queue
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from nats.aio.msg import Msg

from computer_linker.computer.remote.flow import Connect, Flow, Pipe
from computer_linker.errors import Aborted, InvalidRequest, LimitExceeded, LinkError, PermissionDenied
from computer_linker.fleet import subjects
from computer_linker.fleet.link import FleetLink
from computer_linker.fleet.messages import FlowBody, Said, parsed
from computer_linker.fleet.seal import Signer, opened

WINDOW = 4 << 20
"""The most bytes that are sent and not yet taken."""
CHUNK = 512 * 1024
_ROOM = 4096
"""What the server's limit must leave for signature, certificate and subject."""
_MAX_STREAMS = 8
_SILENT_S = 15.0
"""How long the other side may say nothing before the connection counts as lost."""
_PUBLISH_S = 10.0
_FIRST_ASK_S, _ASK_S = 0.05, 1.0


@dataclass(frozen=True, slots=True)
class Ends:
    """Whose stream it is: our key, the other's key, and where the other listens."""

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
        """What to listen to."""
        return subjects.every_flow(self._seat)

    async def take(self, raw: Msg) -> None:
        """One message; who waits in a worker thread looks whether it is what it should be."""
        stream = self._open.get(raw.subject.rpartition(".")[2])
        if stream is not None:
            stream.take(raw.data)

    def again(self) -> None:
        """The connection to the server is another or gone: what was on its way may be lost, so all go on from what they have."""
        for stream in self._open.values():
            stream.wake()

    @contextmanager
    def dialling(self, link: FleetLink, handle: str, other: str, seat: str) -> Iterator[Connect]:
        """The calling side of a stream, for as long as the body runs."""
        with self._opened(link, handle, other, seat) as stream:
            yield stream.dial

    @contextmanager
    def expected(self, link: FleetLink, handle: str, other: str, seat: str) -> Iterator[Flow]:
        """A flow whose other side is this key and says this handle, for as long as the body runs."""
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
        ends = Ends(self._signer, other, subjects.flow(seat, self._seat, handle), handle)
        stream = self._open[handle] = _Stream(ends, link, self._refuse)
        try:
            yield stream
        finally:
            del self._open[handle]
            stream.close()


class _Stream:
    """One side of one stream: an inbox that the event loop fills, everything else in the one thread that waits there."""

    def __init__(self, ends: Ends, link: FleetLink, refuse: Callable[[LinkError], None]) -> None:
        self.ends, self._link, self._refuse = ends, link, refuse
        self._loop = asyncio.get_running_loop()
        self._inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # Each is written by one thread alone, so that no lock is needed to know how much is held.
        self._came = self._gone = 0
        self._attempt = 0
        self._is_closed = False
        self._sending: Future[None] | None = None
        self.newer: FlowBody | None = None
        """The other side opened it again while an older connection was in use."""

    def take(self, raw: bytes) -> None:
        """Hold a message for the thread that waits. What is more than was agreed is let fall, and then missed as lost."""
        if self._came - self._gone + len(raw) <= 2 * WINDOW:
            self._came += len(raw)
            self._inbox.put(raw)

    def wake(self) -> None:
        """End the connection that is in use."""
        self._inbox.put(None)

    def close(self) -> None:
        """Nothing more comes: who waits here, or begins to, is told so."""
        self._is_closed = True
        self.wake()

    def dial(self, have: int, within_s: float) -> tuple[Pipe, int]:
        """Ask the other side until it answers. Raises OSError when it does not in time."""
        self._attempt += 1
        until, pause = time.monotonic() + within_s, _FIRST_ASK_S
        while (left := until - time.monotonic()) > 0:
            self.say("open", self._attempt, have)
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
        """Wait for the other side to ask. Raises OSError when it does not in time."""
        until = time.monotonic() + within_s
        body, self.newer = self.newer, None
        while body is None or body.what != "open" or body.attempt <= self._attempt:
            body = self._next_open(until)
        self._attempt = body.attempt
        self.say("opened", self._attempt, have)
        return _Pipe(self, self._attempt, have), body.at

    def _next_open(self, until: float) -> FlowBody:
        while not self._is_closed:
            # What ends a connection while the next is being opened was meant for the one before.
            with suppress(ConnectionError):
                return self.next(until - time.monotonic())
        raise ConnectionError("the stream has ended")

    def next(self, within_s: float) -> FlowBody:
        """What the other side says next; what anybody else says is recorded and left out."""
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

    def say(self, what: Said, attempt: int, at: int, data: bytes = b"") -> None:
        """Send one message, from a worker thread. Raises OSError when the server did not take it, or the one before."""
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
        """Wait for the last message to be on its way. Of data, the next piece is signed meanwhile."""
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
    """One connection of a stream, as a flow uses it: blocking, in order, and with room for so much and no more."""

    def __init__(self, stream: _Stream, attempt: int, have: int) -> None:
        self._stream, self._attempt, self._have = stream, attempt, have
        self._out: list[memoryview] = []
        self._waits = 0
        """How many bytes are in it."""
        self._sent = self._taken_there = 0
        self._in = memoryview(b"")
        self._got = self._taken_here = self._told = 0
        self._is_broken = False

    def sendall(self, data: bytes | memoryview) -> None:
        """Send, waiting for as long as the other side has no room."""
        with self._breaking():
            self._out.append(memoryview(data))
            self._waits += len(data)
            size = self._stream.largest
            while self._waits >= size:
                self._send(self._cut(size))

    def recv_into(self, buffer: memoryview) -> int:
        """Take what came, and tell the other side that there is room again."""
        with self._breaking():
            self._flush()
            while not self._in:
                self._hear(self._stream.next(_SILENT_S))
            count = min(len(buffer), len(self._in))
            buffer[:count], self._in = self._in[:count], self._in[count:]
            self._taken_here += count
            if self._taken_here - self._told >= WINDOW // 4:
                self._told = self._taken_here
                self._stream.say("taken", self._attempt, self._told)
            return count

    def shutdown(self, how: int) -> None:
        """Wake the thread that waits in it."""
        self._stream.wake()

    def close(self) -> None:
        """Send the last bytes, if there is still someone to take them."""
        if not self._is_broken:
            with suppress(OSError), self._breaking():
                self._flush()
            self._is_broken = True

    def _flush(self) -> None:
        if self._waits:
            self._send(self._cut(self._waits))

    def _cut(self, size: int) -> bytes:
        """The next bytes that wait to be sent."""
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
            self._hear(self._stream.next(_SILENT_S))
        self._stream.say("data", self._attempt, self._sent, piece)
        self._sent += len(piece)

    def _hear(self, body: FlowBody) -> None:
        if body.what == "open" and body.attempt > self._attempt:
            self._stream.newer = body
            raise ConnectionError("the other side opened it again")
        if body.attempt != self._attempt:
            return
        match body.what:
            case "data":
                self._hear_data(body)
            case "taken":
                self._taken_there = max(self._taken_there, min(body.at, self._sent))
            case "open" if not (self._got or self._sent):
                # Our answer did not arrive.
                self._stream.say("opened", self._attempt, self._have)
            case "lost":
                raise ConnectionError("the other side lost the connection")
            case _:
                return

    def _hear_data(self, body: FlowBody) -> None:
        if body.at < self._got:
            return
        if body.at > self._got or body.at + len(body.data) - self._told > WINDOW:
            raise ConnectionError("something was lost on the way, or more came than was agreed")
        self._got += len(body.data)
        self._in = memoryview(bytes(self._in) + body.data) if self._in else memoryview(body.data)

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """A connection that failed once is used no more, and the other side is told, so that it does not wait in it."""
        if self._is_broken:
            raise ConnectionError("the connection was broken")
        try:
            yield
        except OSError:
            self._is_broken = True
            with suppress(OSError):
                self._stream.say("lost", self._attempt, self._got)
            raise
