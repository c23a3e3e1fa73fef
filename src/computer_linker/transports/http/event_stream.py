"""Server-sent events on /mcp: the notifications that a client listens for, in both eras."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from computer_linker.model.principal import Principal
from computer_linker.transports.http.body import Receive, Send, answer_json
from computer_linker.transports.mcp.list_changes import acknowledged, changed, wanted
from computer_linker.transports.mcp.tools import Tools

MAX_STREAMS = 128
"""Of all clients. Each holds a connection, of which the listener has four times as many."""
_ALIVE_S = 15.0
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
        self._open = 0

    async def of_session(
        self, send: Send, receive: Receive, who: Principal, session_id: bytes, is_valid: Callable[[], bool]
    ) -> None:
        """Notify a handshake-era session, unasked, until it ends."""
        stream = EventStream(send, receive, self._closing, is_valid)
        await self._serve(stream, who, changed("resources"), b"", [(b"mcp-session-id", session_id)])

    async def of_subscription(self, send: Send, receive: Receive, who: Principal, message: dict[str, Any]) -> None:
        """Notify a 2026-07-28 client of what it subscribed to."""
        honored = wanted(message) or {}
        stream = EventStream(send, receive, self._closing, lambda: True)
        notice = changed("resources", message["id"]) if "resourcesListChanged" in honored else b""
        await self._serve(stream, who, notice, acknowledged(honored, message["id"]), [])

    async def _serve(
        self, stream: "EventStream", who: Principal, notice: bytes, first: bytes, headers: list[tuple[bytes, bytes]]
    ) -> None:
        if self._open >= MAX_STREAMS:
            await stream.refuse()
            return
        self._open += 1
        try:
            changes = self._tools.list_changes
            await stream.serve(lambda notify: changes.watched(lambda: who, notify), notice, headers, first)
        finally:
            self._open -= 1


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
            while self._is_valid() and not (closing.done() or left.done()):
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait([changed, closing, left], timeout=_ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if not (closing.done() or left.done()):
                    await self._write(_event(message) if message and self._changed.is_set() else b": alive\n\n")
                self._changed.clear()
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
