"""/mcp: the fast path for plain tool calls, the SDK's session manager for everything else, over both eras."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio
from pydantic_core import to_json

from computer_linker.errors import InvalidRequest
from computer_linker.model.json_text import NotJson, read_json
from computer_linker.model.principal import Principal
from computer_linker.model.request_id import id_of, request_id_of
from computer_linker.transports.http.body import Receive, Scope, Send, answer_empty, answer_json, read_body, replayed
from computer_linker.transports.http.event_stream import Streams
from computer_linker.transports.http.guards import MAX_BODY, Headers, NeedsGrant, check_body_headers
from computer_linker.transports.http.sessions import Session, Sessions, link, note_opening, renamed, unlink
from computer_linker.transports.mcp.dialog import ask_by_result, can_ask
from computer_linker.transports.mcp.fast_path import FastPath, Negotiated, fault_of
from computer_linker.transports.mcp.handshake import MODERN_VERSION
from computer_linker.transports.mcp.profiles import NOTHING_ASKED, Requested, requested_in_headers
from computer_linker.transports.mcp.sdk import load_sdk

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

BuildServer = Callable[[Any], "Server[Any]"]
_MAX_SESSIONS = 1000
_MAX_HANDSHAKE = 64 * 1024
_DISCONNECT_AFTER_S = 0.02
_ALLOWED = [(b"allow", b"GET, POST, DELETE")]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request: its ASGI parts, its principal, and the session it names."""

    scope: Scope
    receive: Receive
    send: Send
    headers: Headers
    who: Principal
    session_id: bytes | None
    session: Session | None


class McpEndpoint:
    """Serves POST, GET and DELETE on /mcp for authenticated callers."""

    def __init__(
        self, fast_path: FastPath, build_server: BuildServer, *, answers_handshake: bool = True, **manager_options: Any
    ) -> None:
        """`answers_handshake` is for a server whose tools are all in the fast path; one with more answers by itself."""
        self._fast_path = fast_path
        self._answers_handshake = answers_handshake
        self._build_server = build_server
        self._manager_options = manager_options
        self._manager: StreamableHTTPSessionManager | None = None
        self._starting = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._sessions = Sessions()
        self._running: dict[tuple[bytes, str | int], anyio.CancelScope] = {}
        self._streams = Streams(fast_path.tools, self._closing)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Close the SDK's sessions at the end."""
        try:
            yield
        finally:
            self._closing.set()
            if self._keeper is not None:
                await asyncio.wait([self._keeper], timeout=10)

    async def serve(self, scope: Scope, receive: Receive, send: Send, headers: Headers, who: Principal) -> None:
        """Answer one request."""
        session_id = headers.get(b"mcp-session-id")
        session = self._sessions.of(session_id, who) if session_id is not None else None
        if session_id is not None and session is None:
            await _protocol_error(send, 404, -32600, "Session not found")
            return
        named = None if session is None else session.negotiated.client
        scope["linker.principal"] = replace(who, client=named) if named else who
        request = Request(scope, receive, send, headers, who, session_id, session)
        if scope["method"] != "POST":
            await self._without_message(request)
            return
        check_body_headers(headers)
        body = await read_body(receive)
        try:
            message = read_json(body)
        except NotJson as error:
            await _protocol_error(send, 400, -32700, error.message)
            return
        except InvalidRequest as error:
            await _protocol_error(send, 400, -32600, error.message, request_id_of(body))
            return
        if (fault := _fault_of(message, len(body))) is not None:
            await _protocol_error(send, 400, -32600, fault, id_of(message))
            return
        self._check_grant(message, who)
        scope["linker.negotiated"] = self._known(message, request)
        if await self._at_once(message, request) or await self._on_fast_path(message, request):
            return
        await self._pass_to_sdk(replace(request, receive=replayed(body, receive)), message)

    async def _without_message(self, request: Request) -> None:
        """Answer GET and DELETE."""
        if not self._answers_handshake or request.scope["method"] not in ("GET", "DELETE"):
            await self._pass_to_sdk(request, None)
            return
        if request.scope["method"] == "GET":
            await self._stream(request)
            return
        if request.session is None or request.session_id is None:
            await _protocol_error(request.send, 400, -32600, "A session id is needed")
            return
        self._sessions.close(request.session_id)
        if request.session.sdk_id is not None:
            await unlink(request.session, (await self._started()).handle_request, request.scope)
        await answer_empty(request.send, 200)

    async def _stream(self, request: Request) -> None:
        """The stream of a handshake-era session: notifications of outdated lists."""
        session, session_id = request.session, request.session_id
        takes = b"text/event-stream" in request.headers.get(b"accept", b"")
        if session is None or session_id is None or not takes:
            await answer_json(
                request.send, 405, {"error": "There is no stream without a session; send POST."}, _ALLOWED
            )
            return
        await self._streams.of_session(
            request.scope, request.send, request.receive, session_id, lambda: self._sessions.has(session_id, session)
        )

    async def _at_once(self, message: dict[str, Any], request: Request) -> bool:
        """True when the message needed no work and was answered: the handshake, a ping, the list of tools."""
        method = message.get("method")
        if not self._answers_handshake or message.get("jsonrpc") != "2.0" or type(method) is not str:
            return False
        if method == "tools/call":
            return False
        if "id" not in message:
            return await self._noted(message, request)
        params = message.get("params")
        if type(message["id"]) not in (str, int) or (params is not None and type(params) is not dict):
            return False
        negotiated = self._negotiated(message, request)
        if negotiated is None:
            return False
        if self._fast_path.is_listening(message, negotiated):
            await self._streams.of_subscription(request.scope, request.send, request.receive, message)
            return True
        answer = self._fast_path.answer(message, negotiated)
        if answer is not None:
            extra = await self._opened(message, negotiated, request)
            body = b'{"jsonrpc":"2.0","id":' + to_json(message["id"]) + b',"result":' + answer + b"}"
            await answer_json(request.send, 200, body, extra)
            return True
        if self._fast_path.is_absent(message, negotiated):
            status = 404 if negotiated.era == "modern" else 200
            await _protocol_error(request.send, status, -32601, "Method not found", message["id"])
            return True
        return False

    async def _noted(self, message: dict[str, Any], request: Request) -> bool:
        """True for a notification that needs no action, in a session the SDK does not have."""
        if request.session is None or request.session.sdk_id is not None:
            return False
        if message["method"] == "notifications/cancelled":
            return False
        await answer_empty(request.send, 202)
        return True

    async def _opened(
        self, message: dict[str, Any], negotiated: Negotiated, request: Request
    ) -> list[tuple[bytes, bytes]] | None:
        """The session header: of a new session after a handshake, else of the existing one."""
        if message["method"] != "initialize":
            return None if request.session_id is None else [(b"mcp-session-id", request.session_id)]
        session_id, gone = self._sessions.open(Session(request.who.id, negotiated))
        for old in gone:
            if old.sdk_id is not None:
                await unlink(old, (await self._started()).handle_request, request.scope)
        await note_opening(self._fast_path.tools, request.who, session_id, negotiated)
        return [(b"mcp-session-id", session_id)]

    def _check_grant(self, message: Any, who: Principal) -> None:
        """Raise NeedsGrant when an OAuth client needs a larger grant; other callers have all the config allows."""
        if who.grants is None or type(message) is not dict or message.get("method") != "tools/call":
            return
        params = message.get("params")
        arguments = params.get("arguments") if type(params) is dict else None
        lacking = self._fast_path.tools.lacking_grant(arguments, who) if type(arguments) is dict else None
        if lacking is not None:
            raise NeedsGrant(lacking, arguments or {})

    async def _on_fast_path(self, message: dict[str, Any], request: Request) -> bool:
        """True when the fast path handled the message."""
        method = message.get("method")
        session_id, who = request.session_id, request.who
        if method == "notifications/cancelled" and session_id is not None and "id" not in message:
            params = message.get("params")
            request_id = params.get("requestId") if type(params) is dict else None
            running = self._running.get((session_id, request_id)) if isinstance(request_id, str | int) else None
            if running is None:
                return await self._nothing_to_cancel(request)
            running.cancel()
            await answer_empty(request.send, 202)
            return True
        if method != "tools/call" or message.get("jsonrpc") != "2.0" or type(message.get("id")) not in (str, int):
            return False
        negotiated = self._negotiated(message, request)
        call = self._fast_path.tool_call(message, negotiated) if negotiated is not None else None
        # Progress, and elicitation in the handshake era, need a stream, which is the SDK's.
        if call is None or negotiated is None or call.progress_token is not None:
            return False
        asks = can_ask(negotiated.client_capabilities)
        if asks and negotiated.era == "handshake" and self._fast_path.tools.may_ask(call.arguments):
            return False
        who = replace(who, client=negotiated.client) if negotiated.client else who
        work = self._fast_path.run(
            call, negotiated, who, None, ask_by_result if asks and negotiated.era == "modern" else None
        )
        if call.state is None and self._fast_path.tools.is_instant(call.name, call.arguments):
            await self._answer(message["id"], await work, request)
        else:
            await self._call(message["id"], work, request)
        return True

    async def _nothing_to_cancel(self, request: Request) -> bool:
        """True when the SDK cannot have the request to cancel either: it has no such session."""
        if not self._answers_handshake or request.session is None or request.session.sdk_id is not None:
            return False
        await answer_empty(request.send, 202)
        return True

    def _known(self, message: dict[str, Any], request: Request) -> Negotiated:
        """What is known of the client from the session, this request's headers and its `_meta`."""
        asked = requested_in_headers(request.headers)
        if request.session is None:
            known = Negotiated(asked=asked)
            self._fast_path.meet(message, known)
            return known
        known = request.session.negotiated
        return known if asked == NOTHING_ASKED else replace(known, asked=asked.over(known.asked))

    def _negotiated(self, message: dict[str, Any], request: Request) -> Negotiated | None:
        """What is known of the client, when headers and body agree; None leaves the request to the SDK."""
        headers = request.headers
        accept = headers.get(b"accept", b"")
        if b"application/json" not in accept or b"text/event-stream" not in accept:
            return None
        version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        if request.session is not None:
            known = self._known(message, request)
            fits = version in ("", known.version) and message["method"] != "initialize"
            return known if fits else None
        fresh = Negotiated(asked=requested_in_headers(headers))
        if message["method"] == "initialize":
            return fresh if version != MODERN_VERSION and b"mcp-method" not in headers else None
        if version != MODERN_VERSION or headers.get(b"mcp-method") != message["method"].encode():
            return None
        params = message.get("params")
        name = params.get("name") if type(params) is dict else None
        if message["method"] == "tools/call":
            return fresh if type(name) is str and headers.get(b"mcp-name") == name.encode() else None
        return fresh if name is None and b"mcp-name" not in headers else None

    async def _call(self, request_id: str | int, work: Coroutine[Any, Any, bytes], request: Request) -> None:
        scope = anyio.CancelScope()
        session_id = request.session_id
        if (session_id, request_id) in self._running:
            work.close()
            await _protocol_error(request.send, 400, -32600, "A request with this id is still under way.", request_id)
            return
        if session_id is not None:
            self._running[session_id, request_id] = scope
        try:
            result = await _unless_disconnected(work, scope, request.receive)
        finally:
            if session_id is not None:
                self._running.pop((session_id, request_id), None)
        if result is None:
            await _protocol_error(request.send, 200, -32800, "Request cancelled", request_id)
            return
        await self._answer(request_id, result, request)

    async def _answer(self, request_id: str | int, result: bytes, request: Request) -> None:
        body = b'{"jsonrpc":"2.0","id":' + to_json(request_id) + b',"result":' + result + b"}"
        extra = [(b"mcp-session-id", request.session_id)] if request.session_id is not None else None
        await answer_json(request.send, 200, body, extra)

    async def _pass_to_sdk(self, request: Request, message: Any) -> None:
        """Pass the request to the SDK, in the session it has there."""
        manager = await self._started()
        scope, send = request.scope, request.send
        if request.session is not None and request.session_id is not None:
            theirs = await link(request.session, manager.handle_request, scope)
            if theirs != request.session_id:
                send = renamed(scope, send, request.session_id, theirs)
            if scope["method"] == "DELETE":
                self._sessions.close(request.session_id)
        elif type(message) is dict and message.get("method") == "initialize":
            send = self._remembering(send, request.who, message, requested_in_headers(request.headers))
        await manager.handle_request(scope, request.receive, send)  # type: ignore[arg-type]  # ASGI's own loose types

    def _remembering(self, send: Send, who: Principal, message: dict[str, Any], asked: Requested) -> Send:
        """Record the session the SDK opens, its principal, and the requested protocol revision."""

        async def noting(event: dict[str, Any]) -> None:
            if event["type"] == "http.response.start" and event["status"] == 200:
                for name, value in event["headers"]:
                    if name.lower() == b"mcp-session-id":
                        negotiated = Negotiated(asked=asked)
                        self._fast_path.answer(message, negotiated)
                        self._sessions.open(Session(who.id, negotiated, sdk_id=value), value)
                        await note_opening(self._fast_path.tools, who, value, negotiated)
            await send(event)

        return noting

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
            # Our own guard has already compared Host and Origin exactly.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=MAX_BODY,
            max_sessions=_MAX_SESSIONS,
            **self._manager_options,
        )
        running = asyncio.Event()

        async def keep() -> None:
            # A separate task: the manager's task group must be exited by the task that entered it.
            async with manager.run():
                running.set()
                await self._closing.wait()

        self._keeper = asyncio.get_running_loop().create_task(keep())
        await running.wait()
        return manager


def _fault_of(message: Any, size: int) -> str | None:
    """Why the message is refused. A handshake is stored as long as its session, so it has a limit of its own."""
    fault = fault_of(message)
    if fault is None and message.get("method") == "initialize" and size > _MAX_HANDSHAKE:
        return f"A handshake is at most {_MAX_HANDSHAKE} bytes."
    return fault


async def _unless_disconnected(
    work: Coroutine[Any, Any, bytes], scope: anyio.CancelScope, receive: Receive
) -> bytes | None:
    """The result of the work; None when it was cancelled by request or by a disconnect.

    A scope, not a task's own cancel(): that would interrupt an operation inside a step it has shielded.
    """
    loop = asyncio.get_running_loop()
    watchers: list[asyncio.Task[None]] = []
    # Most calls finish before a client can disconnect, so the watch begins a little later.
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
