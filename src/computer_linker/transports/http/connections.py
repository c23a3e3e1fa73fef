"""Connections that cannot starve honest clients: a cap, bounded headers in bounded time, and the idle oldest leaving first."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MAX_CONNECTIONS = 512
_HEADERS_DEADLINE_S = 15.0
_READER_DEADLINE_S = 60.0
_MAX_HEAD = 64 * 1024
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with bounds that it leaves to others."""

    silent: ClassVar[dict[BoundedProtocol, None]] = {}
    """Connections that wait for a request or for the rest of one, the oldest first."""
    open_count: ClassVar[int] = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        cls = type(self)
        cls.open_count += 1
        self._head_size = 0
        self._is_in_head = True
        self._deadline = self.loop.call_later(_HEADERS_DEADLINE_S, self._too_slow)
        cls.silent[self] = None
        if cls.open_count > _MAX_CONNECTIONS and cls.silent:
            oldest = next(iter(cls.silent))
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        cls = type(self)
        cls.open_count -= 1
        cls.silent.pop(self, None)
        self._deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_size += len(data)
        super().data_received(data)
        # The parser itself would gather headers for as long as they come.
        if self._is_in_head and self._head_size > _MAX_HEAD and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._deadline.cancel()
        self._is_in_head = False
        if not self.url.startswith(b"/"):
            # A whole address names a host of its own, beside the Host header that the guards compare.
            raise httptools.HttpParserError("the request target must be a path")
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        # Not before: whoever announces a body and holds it back would otherwise never be the first to leave.
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
            type(self).silent[self] = None

    def on_message_begin(self) -> None:
        self._head_size = 0
        self._is_in_head = True
        self._deadline.cancel()
        self._deadline = self.loop.call_later(_HEADERS_DEADLINE_S, self._too_slow)
        super().on_message_begin()

    def _too_slow(self) -> None:
        self.transport.abort()


def protocol() -> Any:
    """The protocol class for uvicorn, with counters of its own for each server."""
    return type("BoundedProtocol", (BoundedProtocol,), {"silent": {}, "open_count": 0})
