"""Connections that cannot starve honest clients: a cap, a deadline for headers, and the idle oldest leaving first."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MAX_CONNECTIONS = 512
_HEADERS_DEADLINE_S = 15.0
_READER_DEADLINE_S = 60.0


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with bounds that it leaves to others."""

    silent: ClassVar[dict[BoundedProtocol, None]] = {}
    """Connections that wait for a request, the oldest first."""
    open_count: ClassVar[int] = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        cls = type(self)
        cls.open_count += 1
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

    def on_headers_complete(self) -> None:
        type(self).silent.pop(self, None)
        self._deadline.cancel()
        if not self.url.startswith(b"/"):
            # A whole address names a host of its own, beside the Host header that the guards compare.
            raise httptools.HttpParserError("the request target must be a path")
        super().on_headers_complete()

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
        self._deadline.cancel()
        self._deadline = self.loop.call_later(_HEADERS_DEADLINE_S, self._too_slow)
        super().on_message_begin()

    def _too_slow(self) -> None:
        self.transport.abort()


def protocol() -> Any:
    """The protocol class for uvicorn, with counters of its own for each server."""
    return type("BoundedProtocol", (BoundedProtocol,), {"silent": {}, "open_count": 0})
