"""Byte streams of calls: separate TLS connections on the same port, admitted by a ticket from the call."""

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
from computer_linker.transports.peer.identity import SERVER_NAME, Identity, client_context
from computer_linker.transports.peer.table import Peer

MAGIC = b"clkbulk2"
"""Sent before the TLS handshake, which begins with another byte: so one port serves links and their streams."""
TICKET = 32
_OFFSET = struct.Struct(">Q")
_SILENT_S = 15.0
"""How long either side may be silent before the connection counts as lost."""
_AHEAD_S = 2.0
"""How long a stream of a paired machine may wait for the call that carries its ticket."""
_MAX_EXPECTED = 16
"""Streams of one paired machine at a time."""
_MAX_NEW = 32
_MAX_OVER = 256
"""Ended calls that are remembered, so that a stream that arrives late for one is closed at once."""
_MOST = 1 << 62
"""No file is longer; a larger value is not a length."""


class Bulk:
    """The expected streams, by the ticket of their call."""

    def __init__(self) -> None:
        self._expected: dict[bytes, tuple[str, queue.Queue[ssl.SSLSocket]]] = {}
        self._ended: dict[bytes, str] = {}
        """The fingerprint for each ticket of an ended call, the oldest first."""
        self._changed = threading.Condition()

    @contextmanager
    def expected(self, ticket: bytes, fingerprint: str) -> Iterator[Flow]:
        """A flow from the peer with this ticket and key, while the context is open."""
        theirs = sum(owner == fingerprint for owner, _ in self._expected.values())
        if len(ticket) != TICKET or ticket in self._expected or theirs >= _MAX_EXPECTED:
            raise InvalidRequest("That stream cannot be taken.", rule="bad_ticket")
        arrived: queue.Queue[ssl.SSLSocket] = queue.Queue(4)
        with self._changed:
            self._expected[ticket] = (fingerprint, arrived)
            self._changed.notify_all()
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
        """Admit a connection that began with the magic; blocking. Returns the rule it was refused by, or None."""
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
                # Before anything is read, since an unpaired client could delay that.
                link.close()
                return "unpaired"
            ticket, fingerprint = _exactly(link, TICKET), sha256(shown).hexdigest()
            arrived = self._awaited(ticket, fingerprint)
            if arrived is None:
                link.close()
                # Its call ended before it arrived, as a refused one does: it is late, not unpaired.
                return None if self._ended.get(ticket) == fingerprint else "bad_ticket"
            arrived.put_nowait(link)
        except (OSError, queue.Full):
            link.close()
        return None

    def _awaited(self, ticket: bytes, shown: str) -> "queue.Queue[ssl.SSLSocket] | None":
        """The queue for a stream with this ticket and key. The call arrives on another connection, so it may be the later one."""
        with self._changed:
            self._changed.wait_for(lambda: ticket in self._expected or ticket in self._ended, _AHEAD_S)
            fingerprint, arrived = self._expected.get(ticket, ("", None))
        return arrived if shown == fingerprint else None

    def _end(self, ticket: bytes) -> None:
        with self._changed:
            self._ended[ticket] = self._expected.pop(ticket)[0]
            if len(self._ended) > _MAX_OVER:
                del self._ended[next(iter(self._ended))]
            self._changed.notify_all()


def _arriving(arrived: "queue.Queue[ssl.SSLSocket]") -> Connect:
    def connect(have: int, within_s: float) -> tuple[Pipe, int]:
        try:
            link = arrived.get(timeout=within_s)
        except queue.Empty:
            raise TimeoutError("no connection came") from None
        return link, _agreed(link, _OFFSET.pack(have))

    return connect


def dialer(own: Identity, peer: Peer, ticket: bytes) -> Connect:
    """Open the stream's connections from the calling side."""
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
    """Exchange the number of bytes that each side has."""
    try:
        link.sendall(own)
        there: int = _OFFSET.unpack(_exactly(link, _OFFSET.size))[0]
        if there > _MOST:
            raise ConnectionError("that is no length")
        return there
    except OSError:
        link.close()
        raise


class StreamAdmission:
    """Admits stream connections in threads, a bounded number at a time: an unauthenticated one holds a thread."""

    def __init__(self, bulk: Bulk, context: ssl.SSLContext, refused: Callable[[str], None]) -> None:
        self._bulk, self._context, self._refused = bulk, context, refused
        self._new: dict[socket.socket, str] = {}
        """A duplicate of each unauthenticated connection, and its address."""
        self._lock = threading.Lock()

    def take(self, raw: socket.socket) -> None:
        """Admit a connection that began with the magic; `refused` is called from its thread."""
        try:
            handle, where = raw.dup(), str(raw.getpeername()[0])
        except OSError:
            raw.close()
            return
        with self._lock:
            if len(self._new) >= _MAX_NEW:
                self._evict()
            self._new[handle] = where
        threading.Thread(target=self._admit, args=(raw, handle), name="peer-stream", daemon=True).start()

    def _evict(self) -> None:
        """Make room: close the oldest of the address that has most of them. Its thread sees the end of its connection."""
        busiest, _ = Counter(self._new.values()).most_common(1)[0]
        oldest = next(handle for handle, where in self._new.items() if where == busiest)
        del self._new[oldest]
        with suppress(OSError):
            oldest.shutdown(socket.SHUT_RDWR)
        oldest.close()

    def _admit(self, raw: socket.socket, handle: socket.socket) -> None:
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


__all__ = ["MAGIC", "TICKET", "Bulk", "StreamAdmission", "dialer"]
