"""Server-sent events on /mcp: the notifications that a client listens for, in both eras."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from computer_linker.dispatch.live_sessions import LiveSessions
from computer_linker.model.principal import Principal
from computer_linker.transports.http.body import Receive, Scope, Send, answer_json
from computer_linker.transports.mcp.list_changes import acknowledged, changed, wanted
from computer_linker.transports.mcp.tools import Tools

MAX_STREAMS = 128
"""Of all clients. Each holds a connection, of which the listener has four times as many."""
MAX_OF_ONE = 32
"""Of one principal: the owner token may serve many programs, and none of them may take all."""
_ALIVE_S = 15.0
_CHECK_S = 1.0
"""How soon a stream ends after its session was ended, or its credential replaced."""
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

Watched = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Calls its argument for each change, for as long as the context is entered."""


class Streams:
    """The streams of one endpoint."""

    def __init__(self, tools: Tools, closing: asyncio.Event) -> None:
        self._tools, self._closing = tools, closing
        self._open: Counter[str] = Counter()

    async def of_session(
        self, scope: Scope, send: Send, receive: Receive, session_id: bytes, is_open: Callable[[], bool]
    ) -> None:
        """Notify a handshake-era session, unasked, until it ends."""
        who, holds = scope["linker.principal"], scope["linker.holds"]
        stream = EventStream(send, receive, self._closing, lambda: is_open() and holds(who))
        await self._serve(stream, who, changed("resources"), b"", [(b"mcp-session-id", session_id)])

    async def of_subscription(self, scope: Scope, send: Send, receive: Receive, message: dict[str, Any]) -> None:
        """Notify a 2026-07-28 client of what it subscribed to, until its access ends."""
        who: Principal = scope["linker.principal"]
        who = replace(who, client=scope["linker.negotiated"].client or who.client)
        honored = wanted(message) or {}
        stream = EventStream(send, receive, self._closing, partial(scope["linker.holds"], who))
        notice = changed("resources", message["id"]) if "resourcesListChanged" in honored else b""
        await self._serve(stream, who, notice, acknowledged(honored, message["id"]), [])

    async def _serve(
        self, stream: "EventStream", who: Principal, notice: bytes, first: bytes, headers: list[tuple[bytes, bytes]]
    ) -> None:
        if self._open.total() >= MAX_STREAMS or self._open[who.id] >= MAX_OF_ONE:
            await stream.refuse()
            return
        self._open[who.id] += 1
        live = self._tools.services.use(LiveSessions)
        if not live.is_ended(who):
            # Listed, also when it only listens: so the owner can end it.
            live.seen(who)
        try:
            changes = self._tools.list_changes
            await stream.serve(lambda notify: changes.watched(lambda: who, notify), notice, headers, first)
        finally:
            self._open[who.id] -= 1
            self._open += Counter()  # without those that have none


class EventStream:
    """Sends one message for each change until the client leaves, the service ends, or the session does."""

    def __init__(self, send: Send, receive: Receive, closing: asyncio.Event, is_valid: Callable[[], bool]) -> None:
        self._send, self._receive = send, receive
        self._closing, self._is_valid = closing, is_valid
        self._changed = asyncio.Event()

    async def serve(
        self, watched: Watched, message: bytes, headers: list[tuple[bytes, bytes]], first: bytes = b""
    ) -> None:
        """`first` is sent at once, `message` for each change unless it is empty."""
        # Before the response begins: a change right after it must not be missed.
        with watched(self._changed.set):
            await self._send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *headers]})
            # A comment, so that a client behind a buffering proxy sees that the stream is open.
            await self._write(_event(first) if first else b": open\n\n")
            has_left = await self._until_ended(message)
        if not has_left:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _until_ended(self, message: bytes) -> bool:
        """Send the changes; True when the client left."""
        closing, left = asyncio.ensure_future(self._closing.wait()), asyncio.ensure_future(self._left())
        try:
            written = time.monotonic()
            while self._is_valid() and not (closing.done() or left.done()):
                if self._changed.is_set() and message:
                    data = _event(message)
                else:
                    data = b": alive\n\n" if time.monotonic() - written >= _ALIVE_S else b""
                self._changed.clear()
                if data:
                    await self._write(data)
                    written = time.monotonic()
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait([changed, closing, left], timeout=_CHECK_S, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
            return left.done()
        finally:
            closing.cancel()
            left.cancel()

    async def refuse(self) -> None:
        await answer_json(self._send, 503, {"error": "Too many streams are open; close one."})

    async def _write(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _event(message: bytes) -> bytes:
    return b"event: message\ndata: " + message + b"\n\n"
