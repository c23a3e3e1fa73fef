"""/mcp: the lean lane for plain tool calls, the SDK's session manager for everything else, over both eras."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
from pydantic_core import to_json

from computer_linker.errors import InvalidRequest
from computer_linker.model.json_text import NotJson, read_json
from computer_linker.model.principal import Principal
from computer_linker.transports.http.body import Receive, Scope, Send, answer_empty, answer_json, read_body, replayed
from computer_linker.transports.http.guards import MAX_BODY, Headers, NeedsGrant, check_body_headers
from computer_linker.transports.mcp.behind import load_sdk
from computer_linker.transports.mcp.dialog import ask_by_result, can_ask
from computer_linker.transports.mcp.lane import MODERN_VERSION, Lane, Talk, client_name

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

BuildServer = Callable[[Any], "Server[Any]"]
_MAX_SESSIONS = 1000
_DISCONNECT_AFTER_S = 0.02


class McpEndpoint:
    """Serves POST, GET and DELETE on /mcp for callers who have proved who they are."""

    def __init__(self, lane: Lane, build_server: BuildServer, **manager_options: Any) -> None:
        self._lane = lane
        self._build_server = build_server
        self._manager_options = manager_options
        self._manager: StreamableHTTPSessionManager | None = None
        self._starting = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._sessions: dict[bytes, tuple[str, Talk]] = {}
        self._running: dict[tuple[bytes, str | int], anyio.CancelScope] = {}

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Let go of the SDK's sessions at the end."""
        try:
            yield
        finally:
            self._closing.set()
            if self._keeper is not None:
                await asyncio.wait([self._keeper], timeout=10)

    async def serve(self, scope: Scope, receive: Receive, send: Send, headers: Headers, who: Principal) -> None:
        """Answer one request."""
        session = headers.get(b"mcp-session-id")
        if session is not None and not self._is_own(session, who):
            await _protocol_error(send, 404, -32600, "Session not found")
            return
        scope["linker.principal"] = who
        if scope["method"] != "POST":
            await self._hand_over(scope, receive, send, session, who, None)
            return
        check_body_headers(headers)
        body = await read_body(receive)
        try:
            message = read_json(body)
        except NotJson as error:
            await _protocol_error(send, 400, -32700, error.message)
            return
        except InvalidRequest as error:
            await _protocol_error(send, 400, -32600, error.message)
            return
        self._check_grant(message, who)
        if type(message) is dict and await self._in_lane(message, headers, session, who, receive, send):
            return
        await self._hand_over(scope, replayed(body, receive), send, session, who, message)

    def _check_grant(self, message: Any, who: Principal) -> None:
        """Raise NeedsGrant when an OAuth client must first be given more; other callers have all the config allows."""
        if who.grants is None or type(message) is not dict or message.get("method") != "tools/call":
            return
        params = message.get("params")
        arguments = params.get("arguments") if type(params) is dict else None
        lacking = self._lane.tools.lacking_grant(arguments, who) if type(arguments) is dict else None
        if lacking is not None:
            raise NeedsGrant(lacking)

    async def _in_lane(
        self,
        message: dict[str, Any],
        headers: Headers,
        session: bytes | None,
        who: Principal,
        receive: Receive,
        send: Send,
    ) -> bool:
        """True when the lane took the message."""
        method = message.get("method")
        if method == "notifications/cancelled" and session is not None and "id" not in message:
            params = message.get("params")
            request_id = params.get("requestId") if type(params) is dict else None
            running = self._running.get((session, request_id)) if isinstance(request_id, str | int) else None
            if running is None:
                return False
            running.cancel()
            await answer_empty(send, 202)
            return True
        if method != "tools/call" or message.get("jsonrpc") != "2.0" or type(message.get("id")) not in (str, int):
            return False
        talk = self._talk(message, headers, session)
        call = self._lane.tool_call(message, talk) if talk is not None else None
        # Progress, and asking back in the handshake era, need a stream, which is the SDK's.
        if call is None or talk is None or call.progress_token is not None:
            return False
        asks = can_ask(talk.client_capabilities)
        if asks and talk.era == "handshake" and self._lane.tools.may_ask(call.arguments):
            return False
        who = replace(who, client=talk.client) if talk.client else who
        work = self._lane.run(call, talk, who, None, ask_by_result if asks and talk.era == "modern" else None)
        await self._call(message["id"], work, session, receive, send)
        return True

    def _talk(self, message: dict[str, Any], headers: Headers, session: bytes | None) -> Talk | None:
        """What is known of the client, when headers and body plainly agree; None leaves it to the SDK."""
        accept = headers.get(b"accept", b"")
        if b"application/json" not in accept or b"text/event-stream" not in accept:
            return None
        version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        if session is not None:
            known = self._sessions[session][1]
            return known if version in ("", known.version) else None
        if version != MODERN_VERSION or headers.get(b"mcp-method") != b"tools/call":
            return None
        params = message.get("params")
        name = params.get("name") if type(params) is dict else None
        if type(name) is not str or headers.get(b"mcp-name") != name.encode():
            return None
        return Talk()

    async def _call(
        self,
        request_id: str | int,
        work: Coroutine[Any, Any, bytes],
        session: bytes | None,
        receive: Receive,
        send: Send,
    ) -> None:
        scope = anyio.CancelScope()
        if session is not None:
            self._running[session, request_id] = scope
        try:
            result = await _unless_disconnected(work, scope, receive)
        finally:
            if session is not None:
                self._running.pop((session, request_id), None)
        if result is None:
            await _protocol_error(send, 200, -32800, "Request cancelled", request_id)
            return
        body = b'{"jsonrpc":"2.0","id":' + to_json(request_id) + b',"result":' + result + b"}"
        extra = [(b"mcp-session-id", session)] if session is not None else None
        await answer_json(send, 200, body, extra)

    async def _hand_over(
        self, scope: Scope, receive: Receive, send: Send, session: bytes | None, who: Principal, message: Any
    ) -> None:
        manager = await self._started()
        if session is not None and scope["method"] == "DELETE":
            self._sessions.pop(session, None)
        if type(message) is dict and message.get("method") == "initialize":
            send = self._remembering(send, who, message)
        await manager.handle_request(scope, receive, send)  # type: ignore[arg-type]  # ASGI's own loose types

    def _remembering(self, send: Send, who: Principal, message: dict[str, Any]) -> Send:
        """Note the session the SDK opens, for whom, and which revision it was asked for."""

        async def noting(event: dict[str, Any]) -> None:
            if event["type"] == "http.response.start" and event["status"] == 200:
                for name, value in event["headers"]:
                    if name.lower() == b"mcp-session-id":
                        self._remember(value, who, message)
            await send(event)

        return noting

    def _remember(self, session: bytes, who: Principal, message: dict[str, Any]) -> None:
        talk = Talk()
        self._lane.answer(message, talk)
        params = message.get("params")
        talk.client = client_name(params.get("clientInfo")) if type(params) is dict else None
        while len(self._sessions) >= _MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        self._sessions[session] = (who.id, talk)

    def _is_own(self, session: bytes, who: Principal) -> bool:
        known = self._sessions.get(session)
        return known is not None and known[0] == who.id

    async def _started(self) -> "StreamableHTTPSessionManager":
        async with self._starting:
            if self._manager is None:
                await asyncio.to_thread(load_sdk)
                self._manager = await self._start_manager()
        return self._manager

    async def _start_manager(self) -> "StreamableHTTPSessionManager":
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        manager = StreamableHTTPSessionManager(
            self._build_server(lambda ctx: ctx.request.scope["linker.principal"]),
            # Our own guard has compared Host and Origin exactly, before this.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=MAX_BODY,
            max_sessions=_MAX_SESSIONS,
            **self._manager_options,
        )
        running = asyncio.Event()

        async def keep() -> None:
            # A task of its own: the manager's task group must be left by the task that entered it.
            async with manager.run():
                running.set()
                await self._closing.wait()

        self._keeper = asyncio.get_running_loop().create_task(keep())
        await running.wait()
        return manager


async def _unless_disconnected(
    work: Coroutine[Any, Any, bytes], scope: anyio.CancelScope, receive: Receive
) -> bytes | None:
    """The result of the work; None when it was cancelled, by the client's word or by its leaving.

    A scope, not a task's own cancel(): that would tear an operation out of a step it has shielded.
    """
    loop = asyncio.get_running_loop()
    watchers: list[asyncio.Task[None]] = []
    # Most calls are done before anybody could leave, so the watch begins a little later.
    later = loop.call_later(
        _DISCONNECT_AFTER_S, lambda: watchers.append(loop.create_task(_cancel_on_leaving(scope, receive)))
    )
    try:
        with scope:
            return await work
        return None
    finally:
        later.cancel()
        for watcher in watchers:
            watcher.cancel()


async def _cancel_on_leaving(scope: anyio.CancelScope, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _protocol_error(
    send: Send, status: int, code: int, message: str, request_id: str | int | None = None
) -> None:
    await answer_json(send, status, {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})
