"""Bytes beside a call: a TLS connection of its own on the same port, let in by a ticket that the call carried."""

import queue
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

from computer_linker.computer.remote.flow import Connect, Flow, Pipe
from computer_linker.errors import Aborted, InvalidRequest
from computer_linker.transports.peer.identity import Identity
from computer_linker.transports.peer.table import Peer
from computer_linker.transports.peer.tls import SERVER_NAME, client_context

MAGIC = b"clkbulk2"
"""Sent before the TLS handshake, which begins with another byte: so one port serves links and their streams."""
TICKET = 32
_OFFSET = struct.Struct(">Q")
_SILENT_S = 15.0
"""How long either side may say nothing before the connection counts as lost."""
_AHEAD_S = 2.0
"""How long a stream of a paired machine may be there before the call that carries its ticket is read."""
_MAX_EXPECTED = 16
"""Streams of one paired machine at a time."""
_MAX_NEW = 32
_MAX_OVER = 256
"""How many calls that ended are remembered, so that a stream which comes late for one is told so at once."""
_MOST = 1 << 62
"""No file is longer; what says so has not sent a length."""


class Bulk:
    """The streams that are expected here, by the ticket of their call."""

    def __init__(self) -> None:
        self._expected: dict[bytes, tuple[str, queue.Queue[ssl.SSLSocket]]] = {}
        self._over: dict[bytes, str] = {}
        """Whose the tickets of calls that ended were, the oldest first."""
        self._news = threading.Condition()

    @contextmanager
    def expected(self, ticket: bytes, fingerprint: str) -> Iterator[Flow]:
        """A flow whose other side comes with this ticket and this key, for as long as the body runs."""
        theirs = sum(owner == fingerprint for owner, _ in self._expected.values())
        if len(ticket) != TICKET or ticket in self._expected or theirs >= _MAX_EXPECTED:
            raise InvalidRequest("That stream cannot be taken.", rule="bad_ticket")
        arrived: queue.Queue[ssl.SSLSocket] = queue.Queue(4)
        with self._news:
            self._expected[ticket] = (fingerprint, arrived)
            self._news.notify_all()
        flow = Flow()
        flow.carried_by(_arriving(arrived))
        try:
            yield flow
        finally:
            self._end(ticket)
            flow.fail(Aborted("The call ended."))
            while not arrived.empty():
                arrived.get_nowait().close()

    def take(self, raw: socket.socket, context: ssl.SSLContext) -> str | None:
        """Let in a connection that began with the magic; blocking. Why it was refused, or None."""
        try:
            raw.settimeout(_SILENT_S)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = context.wrap_socket(raw, server_side=True)
        except OSError:
            raw.close()
            return "unpaired"
        try:
            shown = link.getpeercert(binary_form=True)
            if shown is None:
                # Before it may say anything, for it could take its time over it.
                link.close()
                return "unpaired"
            ticket, fingerprint = _exactly(link, TICKET), sha256(shown).hexdigest()
            arrived = self._awaited(ticket, fingerprint)
            if arrived is None:
                link.close()
                # Its own call ended before it came, as a refused one does: it is late, and no stranger.
                return None if self._over.get(ticket) == fingerprint else "bad_ticket"
            arrived.put_nowait(link)
        except (OSError, queue.Full):
            link.close()
        return None

    def _awaited(self, ticket: bytes, shown: str) -> "queue.Queue[ssl.SSLSocket] | None":
        """Where a stream with this ticket and key belongs. The call comes on another connection, so it may be the later one."""
        with self._news:
            self._news.wait_for(lambda: ticket in self._expected or ticket in self._over, _AHEAD_S)
            fingerprint, arrived = self._expected.get(ticket, ("", None))
        return arrived if shown == fingerprint else None

    def _end(self, ticket: bytes) -> None:
        with self._news:
            self._over[ticket] = self._expected.pop(ticket)[0]
            if len(self._over) > _MAX_OVER:
                del self._over[next(iter(self._over))]
            self._news.notify_all()


def _arriving(arrived: "queue.Queue[ssl.SSLSocket]") -> Connect:
    def connect(have: int, within_s: float) -> tuple[Pipe, int]:
        try:
            link = arrived.get(timeout=within_s)
        except queue.Empty:
            raise TimeoutError("nobody came") from None
        return link, _agreed(link, _OFFSET.pack(have))

    return connect


def dialer(own: Identity, peer: Peer, ticket: bytes) -> Connect:
    """Opens the stream's connections from the calling side."""
    context = client_context(own, peer.cert_pem)

    def connect(have: int, within_s: float) -> tuple[Pipe, int]:
        host, _, port = peer.address.rpartition(":")
        raw = socket.create_connection((host.strip("[]"), int(port)), timeout=min(within_s, _SILENT_S))
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.settimeout(_SILENT_S)
            raw.sendall(MAGIC)
            link = context.wrap_socket(raw, server_hostname=SERVER_NAME)
        except OSError:
            raw.close()
            raise
        shown = link.getpeercert(binary_form=True)
        if shown is None or sha256(shown).hexdigest() != peer.fingerprint:
            link.close()
            raise ConnectionError("another key than the paired one")
        return link, _agreed(link, ticket + _OFFSET.pack(have))

    return connect


def _agreed(link: ssl.SSLSocket, own: bytes) -> int:
    """Say how many bytes are here, and learn how many are there."""
    try:
        link.sendall(own)
        there: int = _OFFSET.unpack(_exactly(link, _OFFSET.size))[0]
        if there > _MOST:
            raise ConnectionError("that is no length")
        return there
    except OSError:
        link.close()
        raise


class Hall:
    """Lets streams in without holding up the event loop, a few at a time: a stranger costs a thread until it is known."""

    def __init__(self, bulk: Bulk, context: ssl.SSLContext, refused: Callable[[str], None]) -> None:
        self._bulk, self._context, self._refused = bulk, context, refused
        self._new: dict[socket.socket, str] = {}
        """A second handle of each connection that is not known yet, and where it comes from."""
        self._lock = threading.Lock()

    def take(self, raw: socket.socket) -> None:
        """Take a connection that began with the magic; `refused` is called from its thread."""
        try:
            handle, where = raw.dup(), str(raw.getpeername()[0])
        except OSError:
            raw.close()
            return
        with self._lock:
            if len(self._new) >= _MAX_NEW:
                self._send_one_away()
            self._new[handle] = where
        threading.Thread(target=self._let_in, args=(raw, handle), name="peer-stream", daemon=True).start()

    def _send_one_away(self) -> None:
        """Make room: the oldest of the address that has most of them. Its thread sees the end of its connection."""
        crowd, _ = Counter(self._new.values()).most_common(1)[0]
        oldest = next(handle for handle, where in self._new.items() if where == crowd)
        del self._new[oldest]
        with suppress(OSError):
            oldest.shutdown(socket.SHUT_RDWR)
        oldest.close()

    def _let_in(self, raw: socket.socket, handle: socket.socket) -> None:
        try:
            if (rule := self._bulk.take(raw, self._context)) is not None:
                self._refused(rule)
        finally:
            with self._lock:
                if self._new.pop(handle, None) is not None:
                    handle.close()


def _exactly(link: ssl.SSLSocket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        got = link.recv(size - len(data))
        if not got:
            raise ConnectionError("it ended early")
        data += got
    return bytes(data)


__all__ = ["MAGIC", "TICKET", "Bulk", "Hall", "dialer"]
