"""Sessions of the handshake era: opened here, and opened at the SDK's manager once one needs the SDK."""

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_core import to_json

from computer_linker.model.principal import Principal
from computer_linker.transports.http.body import Scope, Send
from computer_linker.transports.mcp.fast_path import Negotiated
from computer_linker.transports.mcp.tools import Tools

Handle = Callable[[Any, Any, Any], Awaitable[None]]
"""The SDK's manager, as an ASGI application."""
_MAX_SESSIONS = 1000
_PLAIN = [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]


@dataclass(slots=True)
class Session:
    """Its principal, what is known of the client, and its id at the SDK once it has one."""

    owner: str
    negotiated: Negotiated
    sdk_id: bytes | None = None
    linking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """The open sessions. Past the limit, the longest idle one of the principal with most sessions is closed."""

    def __init__(self) -> None:
        self._known: dict[bytes, Session] = {}

    def open(self, session: Session, session_id: bytes | None = None) -> tuple[bytes, list[Session]]:
        """Return its id, and the sessions that were closed for it."""
        gone = []
        while len(self._known) >= _MAX_SESSIONS:
            gone.append(self._known.pop(self._silent_longest()))
        session_id = session_id or secrets.token_hex(16).encode()
        self._known[session_id] = session
        return session_id, gone

    def _silent_longest(self) -> bytes:
        """The longest idle session of the principal with most sessions, so that flooding only evicts the flooder's own."""
        (busiest, _), *_ = Counter(session.owner for session in self._known.values()).most_common(1)
        return next(key for key, session in self._known.items() if session.owner == busiest)

    def of(self, session_id: bytes, who: Principal) -> Session | None:
        """The session, if this caller opened it."""
        session = self._known.get(session_id)
        if session is None or session.owner != who.id:
            return None
        self._known[session_id] = self._known.pop(session_id)
        return session

    def has(self, session_id: bytes, session: Session) -> bool:
        """True while this session is open."""
        return self._known.get(session_id) is session

    def close(self, session_id: bytes) -> None:
        """Forget it."""
        self._known.pop(session_id, None)


def session_label(session_id: bytes) -> str:
    """The session as the history names it: a digest, since the id itself is a handle, and handles are not stored there."""
    return f"http-{hashlib.sha256(session_id).hexdigest()[:16]}"


async def note_opening(tools: Tools, who: Principal, session_id: bytes, negotiated: Negotiated) -> None:
    """Record the opening of a session under the name its requests will have."""
    named = replace(who, session=session_label(session_id), client=negotiated.client or who.client)
    await tools.opened(named, negotiated.version or "")


async def link(session: Session, handle: Handle, scope: Scope) -> bytes:
    """The session's id at the SDK, which gets the handshake that the fast path already answered."""
    async with session.linking:
        if session.sdk_id is None:
            opened = await _exchange(handle, scope, "POST", session.negotiated.handshake, [])
            sdk_id = opened[b"mcp-session-id"]
            version = (session.negotiated.version or "").encode()
            headers = [(b"mcp-session-id", sdk_id), (b"mcp-protocol-version", version)]
            await _exchange(handle, scope, "POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)
            session.sdk_id = sdk_id
    return session.sdk_id


async def unlink(session: Session, handle: Handle, scope: Scope) -> None:
    """End the session at the SDK."""
    if session.sdk_id is not None:
        await _exchange(handle, scope, "DELETE", None, [(b"mcp-session-id", session.sdk_id)])
        session.sdk_id = None


def renamed(scope: Scope, send: Send, ours: bytes, theirs: bytes) -> Send:
    """Put the SDK's session id into the request's headers, and ours back into the answer's."""
    scope["headers"] = [(name, theirs if name == b"mcp-session-id" else value) for name, value in scope["headers"]]

    async def renaming(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            headers = [(k, ours if k.lower() == b"mcp-session-id" else v) for k, v in event["headers"]]
            event = {**event, "headers": headers}
        await send(event)

    return renaming


async def _exchange(
    handle: Handle, scope: Scope, method: str, message: Any, headers: list[tuple[bytes, bytes]]
) -> dict[bytes, bytes]:
    """Send one message of our own to the SDK and return the headers of its answer; the body is not needed."""
    heard: dict[bytes, bytes] = {}
    body = b"" if message is None else to_json(message)
    given = False

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:
            # No disconnect: the answer is awaited to its end.
            await asyncio.Event().wait()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            heard.update((name.lower(), value) for name, value in event["headers"])

    await handle({**scope, "method": method, "headers": [*_PLAIN, *headers]}, receive, send)
    return heard
