"""The HTTP surface: one plain ASGI function, so that the order of the guards can be read off the page."""

import asyncio
import contextlib
import errno
import hashlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import anyio

from computer_linker.auth.guard import Proven, presented_token, prove, prove_by_oauth, why_refused
from computer_linker.auth.oauth.scopes import asked_with, group_of
from computer_linker.computer.base import Computer
from computer_linker.config.schema import Config
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import CannotServe, ConfigInvalid, PermissionDenied
from computer_linker.model.principal import NO_SESSION, Principal
from computer_linker.registry.services import Services
from computer_linker.transports.http.approval_page import PATH, ApprovalPage
from computer_linker.transports.http.body import Receive, Scope, Send, answer_json, read_body
from computer_linker.transports.http.guards import (
    LOOPBACK,
    Headers,
    NeedsGrant,
    Places,
    Refused,
    authority,
    base_of,
    came_through_a_proxy,
    check_body_headers,
    check_no_page_sent_it,
    check_place,
    collect_headers,
    places_at_the_door,
    places_of,
)
from computer_linker.transports.http.guesses import Guesses
from computer_linker.transports.http.json_api import Action, JsonApi
from computer_linker.transports.http.log_lines import keep_short
from computer_linker.transports.http.mcp_endpoint import McpEndpoint
from computer_linker.transports.http.oauth import OAuthRoutes, bearer_challenge, is_oauth_path
from computer_linker.transports.http.own_address import EVERY, at_own_address, for_this_machine
from computer_linker.transports.mcp.lane import Lane
from computer_linker.transports.mcp.tools import Introspection, Tools
from computer_linker.transports.refusals import RefusalNotes
from computer_linker.transports.tcp_entrance import TcpEntrance

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server as SdkServer

    from computer_linker.transports.mcp.sdk import FindPrincipal

    BuildSdkServer = Callable[[Tools, FindPrincipal], SdkServer[Any]]

_CONTROL, _CAPABILITIES = "/api/v1/control", "/api/v1/capabilities"


class HttpServer:
    """Listens, guards, authenticates and routes."""

    def __init__(
        self,
        services: Services,
        dispatcher: Dispatcher,
        tools: Tools,
        introspection: Introspection,
        build_server: "BuildSdkServer | None" = None,
        actions: dict[str, Action] | None = None,
        **manager_options: Any,
    ) -> None:
        """`actions` are what the service adds to the JSON API.

        `build_server` and `manager_options` (an event store, say) are for servers with more than our tools.
        """
        from computer_linker.transports.mcp.sdk import build_server as ours

        build = build_server or ours
        self._services = services
        self._api = JsonApi(dispatcher, introspection, actions)
        self.mcp = McpEndpoint(
            Lane(tools), lambda who: build(tools, who), answers_handshake=build_server is None, **manager_options
        )
        self._dispatcher = dispatcher
        self._refusals = RefusalNotes(dispatcher)
        # Counted by itself: whoever sends foreign names must not hide that somebody guesses.
        self._strays = RefusalNotes(dispatcher)
        self._guesses = Guesses()
        self._commands = RefusalNotes(dispatcher)
        self._known_places: tuple[Config, Places] | None = None
        self._host, self._port = "127.0.0.1", 0
        self._socket: socket.socket | None = None
        self._ready: Callable[[str], None] | None = None
        self._door: _Door | None = None
        self._was_door: set[int] = set()
        self.bound_url: str | None = None
        self.local_url: str | None = None

    async def listen(self, host: str | None, port: int | None, ready: Callable[[str], None] | None = None) -> None:
        """Bind. Raises CannotServe for a port in use, or a bind beyond loopback without an owner token."""
        config = self._services.config
        self._host = host or config.host
        self._ready = ready
        if self._host not in LOOPBACK and config.owner_token is None:
            raise CannotServe(
                f"binding to {self._host} needs an owner token, and the config has none",
                "make one with: computer-linker token rotate",
            )
        self._socket = _bound(self._host, config.port if port is None else port)
        self._port = self._socket.getsockname()[1]
        self.bound_url = f"http://{authority(self._host, self._port)}/mcp"
        self.local_url = for_this_machine(self.bound_url)

    async def serve(self) -> None:
        """Serve until cancelled."""
        assert self._socket is not None, "listen() comes before serve()"
        keep_short()
        async with self.mcp.open():
            if self._ready is not None and self.local_url is not None:
                self._ready(self.local_url)
            await self._serve_on(self._socket)

    async def open_door(self, port: int, *, has_own_name: bool) -> int:
        """A second loopback port, for a tunnel: whoever comes through it is a stranger, whatever the request says.

        Answers the port. Raises CannotServe for a port in use.
        """
        await self.close_door()
        listener = _bound("127.0.0.1", port)
        found: int = listener.getsockname()[1]
        self._was_door.add(found)
        ending = asyncio.Event()
        self._door = _Door(found, has_own_name, ending, asyncio.create_task(self._serve_on(listener, ending)))
        return found

    async def close_door(self) -> None:
        """Stop listening there; nothing when there is no such door."""
        door, self._door = self._door, None
        if door is not None:
            door.ending.set()
            await asyncio.wait([door.serving], timeout=10)
            door.serving.cancel()

    async def _serve_on(self, listener: socket.socket, ending: asyncio.Event | None = None) -> None:
        import uvicorn

        from computer_linker.transports.http.connections import protocol

        # A server with an `ending` is a tunnel's.
        entrance = TcpEntrance(self._services.use(Computer), self._commands, for_tunnel=ending is not None)

        class Server(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                # Signals are the service's, which ends this server by cancelling it.
                yield

        config = uvicorn.Config(
            self, http=protocol(entrance), ws="none", lifespan="off", log_config=None, log_level="warning",
            access_log=False, server_header=False, date_header=False, timeout_keep_alive=75, proxy_headers=False,
            timeout_graceful_shutdown=5,
        )  # fmt: skip
        server = Server(config)
        watch = asyncio.create_task(_end_with(ending, server)) if ending is not None else None
        try:
            await server.serve(sockets=[listener])
        finally:
            if watch is not None:
                watch.cancel()
            listener.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            headers = collect_headers(scope)
            await self._route(scope, receive, send, headers)
        except Refused as refused:
            if refused.rule is not None:
                await self._strays.note(_peer(scope), refused.rule)
            # What else came on this connection was meant for whoever accepts such a request.
            await answer_json(send, refused.status, {"error": refused.message}, [(b"connection", b"close")])
        except ConfigInvalid as error:
            await answer_json(send, 503, {"error": f"Nothing runs while the config is not valid: {error.message}."})

    async def _route(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        config = self._services.config
        path = scope["path"]
        is_for_phone = path == PATH or path.startswith(f"{PATH}/")
        places = self._places_for(scope, config)
        # At a tunnel's door nothing is local, so nothing is added there.
        if is_for_phone and self._host in EVERY and places.local_hosts:
            places = at_own_address(places, scope.get("server"))
        is_public = check_place(headers, places)
        if b"%" in scope["raw_path"]:
            # No path of ours has a character to encode: only whoever hides one from a rule in front of us writes it so.
            raise Refused(404, "There is nothing here.")
        if path == "/healthz" and not is_public:
            _only(scope, "GET", "HEAD")
            await answer_json(send, 200, b'{"status":"ok"}')
            return
        base = base_of(config, headers, is_public=is_public)
        if is_oauth_path(path):
            await self._oauth.serve(scope, receive, send, headers, base)
            return
        if is_for_phone and not is_public:
            if came_through_a_proxy(headers):
                raise Refused(404, "There is nothing here.")
            await self._services.use(ApprovalPage).serve(scope, receive, send, headers)
            return
        if path not in ("/mcp", _CONTROL, _CAPABILITIES) or (is_public and path != "/mcp"):
            raise Refused(404, "There is nothing here.")
        check_no_page_sent_it(headers)
        peer = _peer(scope)
        is_local = peer in ("127.0.0.1", "::1") and not is_public and not came_through_a_proxy(headers)
        proven = prove(headers, config, is_local=is_local)
        if proven is None and path == "/mcp":
            proven = prove_by_oauth(headers, config, self._oauth.state, resource=f"{base}/mcp")
        if proven is None:
            await self._refuse(peer, headers, send, base)
            return
        who = _principal(proven, headers, peer, is_local=is_local)
        if path == "/mcp":
            scope["linker.family"] = proven.family
            await self._until_revoked(scope, receive, send, headers, who, base)
            return
        if path == _CAPABILITIES:
            _only(scope, "GET")
            status, answer = await self._api.control(b'{"action":"get_capabilities"}', who)
            await answer_json(send, status, answer)
            return
        _only(scope, "POST")
        check_body_headers(headers)
        status, answer = await self._api.control(await read_body(receive), who)
        await answer_json(send, status, answer)

    async def _until_revoked(
        self, scope: Scope, receive: Receive, send: Send, headers: Headers, who: Principal, base: str
    ) -> None:
        """Serve; an OAuth client whose session is ended meanwhile gets no further."""
        if who.proof != "oauth":
            await self._serve_mcp(scope, receive, send, headers, who, base)
            return
        has_begun = False

        async def sending(event: dict[str, Any]) -> None:
            nonlocal has_begun
            has_begun = True
            await send(event)

        during = scope["linker.during"] = partial(self._oauth.state.during, scope["linker.family"])
        with anyio.CancelScope() as call, during(call.cancel):
            await self._serve_mcp(scope, receive, sending, headers, who, base)
        if call.cancelled_caught and not has_begun:
            challenge = bearer_challenge(base, error="invalid_token")
            await answer_json(send, 401, {"error": "The session was ended."}, [(b"www-authenticate", challenge)])

    async def _serve_mcp(
        self, scope: Scope, receive: Receive, send: Send, headers: Headers, who: Principal, base: str
    ) -> None:
        try:
            await self.mcp.serve(scope, receive, send, headers, who)
        except NeedsGrant as lacking:
            wanted = asked_with(who.grants or frozenset(), lacking.capability)
            challenge = bearer_challenge(base, error="insufficient_scope", scope=wanted)
            told = f"The owner has not given this client {group_of(lacking.capability)}."
            await self._dispatcher.refuse(lacking.call, who, PermissionDenied(told, rule="grant"))
            body = {"error": told}
            await answer_json(send, 403, body, [(b"www-authenticate", challenge)])

    @cached_property
    def _oauth(self) -> OAuthRoutes:
        return OAuthRoutes(self._services, self._dispatcher, self._refusals)

    def _places_for(self, scope: Scope, config: Config) -> Places:
        """By the port the request came in at, which no client can choose to claim."""
        port = (scope.get("server") or (None, None))[1]
        if port not in self._was_door:
            return self._places(config)
        door = self._door
        if door is None or door.port != port:
            # A connection that outlived its tunnel: it never becomes a local one.
            raise Refused(421, "This service does not answer to that host name.")
        return places_at_the_door(config, door.port, has_own_name=door.has_own_name)

    def _places(self, config: Config) -> Places:
        """The names we answer to, worked out once for each version of the config."""
        if self._known_places is None or self._known_places[0] is not config:
            self._known_places = (config, places_of(config, self._host, self._port))
        return self._known_places[1]

    async def _refuse(self, peer: str, headers: Headers, send: Send, base: str) -> None:
        """Say that a credential is needed, or, to a peer that guesses, how long to wait."""
        rule = why_refused(headers, self._services.config, self._oauth.state, resource=f"{base}/mcp")
        await self._refusals.note(peer, rule)
        # A token that was once right is no guess: its holder is to learn at once that it must be refreshed.
        wait_s = self._guesses.wrong(peer) if rule == "unknown_token" else None
        if wait_s is not None:
            later = [(b"retry-after", str(wait_s).encode())]
            await answer_json(send, 429, {"error": "Too many wrong credentials; wait before the next."}, later)
            return
        error = "invalid_token" if presented_token(headers) is not None else None
        challenge = [(b"www-authenticate", bearer_challenge(base, error=error))]
        await answer_json(send, 401, {"error": "A valid credential is needed."}, challenge)


@dataclass(frozen=True, slots=True)
class _Door:
    """The port a tunnel leads to, and who serves it."""

    port: int
    has_own_name: bool
    ending: asyncio.Event
    serving: "asyncio.Task[None]"


async def _end_with(ending: asyncio.Event, server: Any) -> None:
    """Have the server close its connections, once it is time."""
    await ending.wait()
    server.should_exit = True


def _principal(proven: Proven, headers: Headers, peer: str, *, is_local: bool) -> Principal:
    session = headers.get(b"mcp-session-id")
    # A digest: the session id itself is a handle, and handles are not kept in the history.
    if session is None and proven.proof == "oauth":
        # An OAuth client has a credential of its own, so it is one conversation by itself.
        session = proven.id.encode()
    label = f"http-{hashlib.sha256(session).hexdigest()[:16]}" if session else NO_SESSION
    agent = headers.get(b"user-agent", b"").decode("latin-1")[:80] or None
    # What came over a tunnel has the address of this machine too; no yes to the one is a yes to the other.
    connection = f"http-{peer}" if is_local else f"http-forwarded-{peer}"
    return Principal(proven.id, proven.proof, label, connection, agent, proven.grants, is_forwarded=not is_local)


def _peer(scope: Scope) -> str:
    address: str = (scope.get("client") or ("",))[0]
    return address


def _only(scope: Scope, *methods: str) -> None:
    if scope["method"] not in methods:
        raise Refused(405, f"Only {' and '.join(methods)} here.")


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotServe(
                f"port {port} is in use by another program",
                f"choose another, such as: --port {_free_after(host, port)}",
            ) from error
        raise CannotServe(f"cannot listen on {host}:{port}: {error.strerror}", "choose another host or port") from error
    listener.listen(1024)
    return listener


def _free_after(host: str, port: int) -> int:
    """A port near the one wanted that could be bound just now; not the very next, where peers are listened for."""
    for other in range(port + 2, min(port + 100, 65536)):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((host, other))
            except OSError:
                continue
            return other
    return 0
