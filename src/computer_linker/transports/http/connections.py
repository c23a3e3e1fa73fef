"""Connection limits so that honest clients are not starved: a cap, bounded headers in bounded time, oldest idle closed first."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from computer_linker.transports.tcp_entrance import TcpEntrance

MAX_CONNECTIONS = 512
MAX_WITH_NEW = 768
"""Above the first bound only connections that have been silent for a while are closed, above this one any."""
MAX_KEPT = 384
"""Above this many, an answer announces that its connection closes: a client must not find a kept one gone at its next request."""
_MAX_REFUSED = 64
_HEADERS_DEADLINE_S = 10.0
_READER_DEADLINE_S = 60.0
_MAX_HEAD = 64 * 1024
_MAX_FIELDS = 256
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
)
_WHY = b'{"error":"Programs that this service started are not answered here."}'
_NOT_ANSWERED = (
    b"HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"cache-control: no-store\r\nconnection: close\r\n\r\n%b" % (len(_WHY), _WHY)
)


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with the bounds it lacks."""

    silent: ClassVar[dict[BoundedProtocol, float]] = {}
    """Connections that wait for a request or for the rest of one, and since when; the oldest first."""
    refused: ClassVar[dict[BoundedProtocol, None]] = {}
    """Refused connections, the oldest first: they are closed before any other to make room."""
    open_count: ClassVar[int] = 0
    time_to_ask_s: ClassVar[float] = 1.0
    """A client on a busy machine may be slow to send its request; one that is cut off before has no answer."""
    entrance: ClassVar[TcpEntrance | None] = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        cls = type(self)
        cls.open_count += 1
        self._size = self._field_size = self._body_size = 0
        self._is_in_head = True
        self._deadline = self.loop.call_later(_HEADERS_DEADLINE_S, self._too_slow)
        self._may_enter: bool | None = True
        self._held = b""
        self._is_answered = False
        cls.silent[self] = self.loop.time()
        if cls.entrance is not None and cls.entrance.is_needed:
            self._identify(cls.entrance, transport)
        if cls.open_count > MAX_CONNECTIONS:
            self._make_room()

    def _make_room(self) -> None:
        """Close a refused connection, else the one that has been silent for longest."""
        cls = type(self)
        oldest = next(iter(cls.refused or cls.silent), None)
        if oldest is None:
            return
        is_new = self.loop.time() - cls.silent.get(oldest, 0.0) < cls.time_to_ask_s
        if is_new and not cls.refused and cls.open_count <= MAX_WITH_NEW:
            return
        # At once: its end is reported only after a whole burst of new connections has been taken.
        cls.refused.pop(oldest, None)
        cls.silent.pop(oldest, None)
        oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        cls = type(self)
        cls.open_count -= 1
        cls.silent.pop(self, None)
        cls.refused.pop(self, None)
        self._deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._may_enter:
            self._hold(data)
            return
        self._size += len(data)
        super().data_received(data)
        # The parser itself would buffer headers and chunk framing without a limit.
        around = self._size - self._body_size
        if around > _MAX_HEAD + self._body_size and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _hold(self, data: bytes) -> None:
        """Buffer data until the sender is identified; data of a refused sender is dropped, and its first request answered."""
        if self._may_enter is None:
            self._held += data
            if len(self._held) > _MAX_HEAD:
                self.transport.pause_reading()
        elif not self._is_answered:
            self._is_answered = True
            # Only now: a connection without a request, such as a port probe, is no event.
            entrance = type(self).entrance
            if entrance is not None:
                entrance.note(self._from)
            if self.transport.is_closing():
                return
            self.transport.write(_NOT_ANSWERED)
            # Not closed at once: a client that still sends would lose the answer. The deadline closes it.
            self.transport.write_eof()

    def _identify(self, entrance: TcpEntrance, transport: asyncio.Transport) -> None:
        """Find out whether this connection is admitted."""
        local, remote = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
        self._may_enter = entrance.check_fast(local, remote)
        if self._may_enter is False:
            self._refuse()
        elif self._may_enter is None:
            self._identifying = self.loop.create_task(self._decide(entrance, local, remote))

    async def _decide(self, entrance: TcpEntrance, local: tuple[Any, ...], remote: tuple[Any, ...]) -> None:
        self._may_enter = await entrance.check_by_scan(local, remote)
        if not self._may_enter:
            self._refuse()
        held, self._held = self._held, b""
        if not self.transport.is_closing():
            self.transport.resume_reading()
        elif self._may_enter:
            return
        if held:
            self.data_received(held)

    def _refuse(self) -> None:
        """Count a refused connection; of a flood only the first are answered."""
        cls = type(self)
        if len(cls.refused) >= _MAX_REFUSED:
            self.transport.abort()
        elif not self.transport.is_closing():
            cls.refused[self] = None

    @property
    def _from(self) -> str:
        return str((self.client or ("gone",))[0])

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_in_head:
            # A trailer would be merged into the headers, where it could set credentials or the host.
            raise httptools.HttpParserError("fields behind the body are not taken")
        super().on_header(name, value)
        self._field_size += len(name) + len(value)
        if self._field_size > _MAX_HEAD or len(self.headers) > _MAX_FIELDS:
            raise httptools.HttpParserError("the head is too large")

    def on_headers_complete(self) -> None:
        self._deadline.cancel()
        self._is_in_head = False
        assert self.parser is not None, "it is what calls this"
        if (fault := _two_readings(self.url, self.parser.get_http_version(), self.headers)) is not None:
            raise httptools.HttpParserError(fault)
        super().on_headers_complete()
        if type(self).open_count > MAX_KEPT:
            self.cycle.default_headers = [*self.cycle.default_headers, (b"connection", b"close")]

    def on_body(self, body: bytes) -> None:
        self._body_size += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        # Not earlier: a client that announces a body and withholds it would otherwise never be closed first.
        type(self).silent.pop(self, None)
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._deadline.cancel()
        self._deadline = self.loop.call_later(_READER_DEADLINE_S, self._too_slow)

    def resume_writing(self) -> None:
        self._deadline.cancel()
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            type(self).silent[self] = self.loop.time()

    def on_message_begin(self) -> None:
        self._size = self._field_size = self._body_size = 0
        self._is_in_head = True
        self._deadline.cancel()
        self._deadline = self.loop.call_later(_HEADERS_DEADLINE_S, self._too_slow)
        super().on_message_begin()

    def _too_slow(self) -> None:
        self.transport.abort()


def _two_readings(url: bytes, version: str, headers: list[tuple[bytes, bytes]]) -> str | None:
    """The part of a request head that another server in between may parse differently; None when there is none."""
    if not url.startswith(b"/") or b"#" in url:
        # An absolute URL names a host of its own, beside the Host header that the guards compare.
        return "the request target must be a path"
    if version not in ("1.0", "1.1"):
        return "the version is none that is spoken here"
    codings = [value.strip(b" \t").lower() for name, value in headers if name == b"transfer-encoding"]
    if codings and (codings != [b"chunked"] or version == "1.0"):
        return "the body comes in a way that is not taken here"
    return None


def protocol(entrance: TcpEntrance | None = None) -> Any:
    """The protocol class for uvicorn, with separate counters for each server."""
    return type(
        "BoundedProtocol", (BoundedProtocol,), {"silent": {}, "refused": {}, "open_count": 0, "entrance": entrance}
    )
