"""The HTTP server: one plain ASGI function, so that the order of the guards is visible in one place."""

import asyncio
import socket
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import anyio

from computer_linker.approvals.push import PushApprover
from computer_linker.auth.guard import Proven, presented_token, prove, prove_by_oauth, why_refused
from computer_linker.auth.oauth.scopes import group_of, scopes_to_request
from computer_linker.computer.base import Computer
from computer_linker.config.schema import Config
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import CannotServe, ConfigInvalid, PermissionDenied
from computer_linker.model.principal import NO_SESSION, Principal
from computer_linker.services import Services
from computer_linker.transports.http.approval_page import PATH, ApprovalPage
from computer_linker.transports.http.body import Receive, Scope, Send, answer_json, read_body
from computer_linker.transports.http.guards import (
    LOOPBACK,
    Authorities,
    Headers,
    NeedsGrant,
    Refused,
    authorities_of,
    authority,
    base_of,
    came_through_a_proxy,
    check_body_headers,
    check_host,
    check_no_page_sent_it,
    collect_headers,
    tunnel_authorities,
)
from computer_linker.transports.http.json_api import Action, JsonApi
from computer_linker.transports.http.listener import TunnelListener, bind, serve
from computer_linker.transports.http.mcp_endpoint import McpEndpoint
from computer_linker.transports.http.oauth import OAuthRoutes, bearer_challenge, is_oauth_path
from computer_linker.transports.http.own_address import EVERY, at_own_address, base_for_others, for_this_machine
from computer_linker.transports.http.sessions import session_label
from computer_linker.transports.local_callers import STARTED_HERE
from computer_linker.transports.mcp.fast_path import FastPath
from computer_linker.transports.mcp.tools import Introspection, Tools
from computer_linker.transports.refusals import STARTED_BY_SERVICE, Guesses, RefusalNotes
from computer_linker.transports.tcp_entrance import TcpEntrance

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server as SdkServer

    from computer_linker.transports.mcp.sdk import FindPrincipal

    BuildSdkServer = Callable[[Tools, FindPrincipal], SdkServer[Any]]

_LOOPBACK = ("127.0.0.1", "::1")
_CONTROL = "/api/v1/control"
_READS = {
    "/api/v1/capabilities": b'{"action":"get_capabilities"}',
    "/api/v1/doctor": b'{"action":"doctor"}',
    "/api/v1/workspaces": b'{"action":"list_workspaces"}',
    "/api/v1/history": b'{"action":"history"}',
    "/api/v1/sessions": b'{"action":"history_insight","view":"sessions"}',
}
"""Questions that a GET asks, each as the control request that it stands for."""


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
        """`actions` are those the service adds to the JSON API.

        `build_server` and `manager_options` (an event store, say) are for servers with more than our tools.
        """
        from computer_linker.transports.mcp.sdk import build_server as ours

        build = build_server or ours
        self._services = services
        self._api = JsonApi(dispatcher, introspection, actions)
        self.mcp = McpEndpoint(
            FastPath(tools), lambda who: build(tools, who), answers_handshake=build_server is None, **manager_options
        )
        self._dispatcher = dispatcher
        self._refusals = RefusalNotes(dispatcher)
        # Counted separately: a flood of foreign host names must not hide credential guessing.
        self._strays = RefusalNotes(dispatcher)
        self._guesses = Guesses()
        self._commands = RefusalNotes(dispatcher)
        self._known_authorities: tuple[Config, Authorities] | None = None
        self._host, self._port = "127.0.0.1", 0
        self._socket: socket.socket | None = None
        self._ready: Callable[[str], None] | None = None
        self._tunnel: TunnelListener | None = None
        self._tunnel_provider = ""
        self._tunnel_ports: set[int] = set()
        """Every port a tunnel has had, including closed ones."""
        self._token_watch: asyncio.Task[None] | None = None
        self._applications = self._entrance(for_tunnel=False)
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
        self._socket = bind(self._host, config.port if port is None else port)
        self._port = self._socket.getsockname()[1]
        self.bound_url = f"http://{authority(self._host, self._port)}/mcp"
        self.local_url = for_this_machine(self.bound_url)
        self._services.listens_on_http = True
        self._services.use(PushApprover).new_link = self.approval_link

    def approval_link(self, source: str) -> str | None:
        """A link that opens the approval page once; None while the page is off."""
        if self.bound_url is None or not self._services.config.approval_page:
            return None
        return base_for_others(self.bound_url) + self._services.use(ApprovalPage).new_link(source)

    async def serve(self) -> None:
        """Serve until cancelled."""
        assert self._socket is not None, "listen() comes before serve()"
        async with self.mcp.open():
            if self._ready is not None and self.bound_url is not None:
                self._ready(self.bound_url)
            try:
                await serve(self, self._socket, self._entrance(for_tunnel=False))
            finally:
                if self._token_watch is not None:
                    self._token_watch.cancel()

    async def open_tunnel_port(self, port: int, *, has_own_name: bool, provider: str = "") -> int:
        """Open a second loopback port for a tunnel and return it. Requests there are remote, whatever they claim.

        Raises CannotServe for a port in use.
        """
        await self.close_tunnel_port()
        self._tunnel = TunnelListener(self, port, self._entrance(for_tunnel=True), has_own_name=has_own_name)
        self._tunnel_provider = provider
        self._tunnel_ports.add(self._tunnel.port)
        return self._tunnel.port

    async def close_tunnel_port(self) -> None:
        """Close the tunnel's port, if one is open."""
        tunnel, self._tunnel = self._tunnel, None
        if tunnel is not None:
            await tunnel.aclose()

    def _entrance(self, *, for_tunnel: bool) -> TcpEntrance:
        return TcpEntrance(self._services.use(Computer), self._commands, for_tunnel=for_tunnel)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            headers = collect_headers(scope)
            await self._route(scope, receive, send, headers)
        except Refused as refused:
            if refused.rule is not None:
                await self._strays.note(_peer(scope), refused.rule)
            # The rest of this connection was meant for a server that accepts such a request.
            await answer_json(send, refused.status, {"error": refused.message}, [(b"connection", b"close")])
        except ConfigInvalid as error:
            await answer_json(send, 503, {"error": f"Nothing runs while the config is not valid: {error.message}."})

    async def _route(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        config = self._services.config
        path = scope["path"]
        is_for_phone = path == PATH or path.startswith(f"{PATH}/")
        authorities = self._authorities_for(scope, config)
        # At a tunnel's port nothing is local, so nothing is added there.
        if is_for_phone and self._host in EVERY and authorities.local_hosts:
            authorities = at_own_address(authorities, scope.get("server"))
        is_public = check_host(headers, authorities)
        if b"%" in scope["raw_path"]:
            # No path of ours needs percent-encoding: it is only used to evade a rule of a proxy in front of us.
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
            if came_through_a_proxy(headers, scope["http_version"]):
                raise Refused(404, "There is nothing here.")
            await self._services.use(ApprovalPage).serve(scope, receive, send, headers)
            return
        if path not in ("/mcp", _CONTROL, *_READS) or (is_public and path != "/mcp"):
            raise Refused(404, "There is nothing here.")
        check_no_page_sent_it(headers)
        is_local = not is_public and not came_through_a_proxy(headers, scope["http_version"])
        await self._serve(scope, receive, send, headers, base, is_local=is_local and _peer(scope) in _LOOPBACK)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, headers: Headers, base: str, *, is_local: bool
    ) -> None:
        """Serve a caller that proves who it is."""
        config, path, peer = self._services.config, scope["path"], _peer(scope)
        proven = prove(headers, config, is_local=is_local)
        if proven is None and path == "/mcp":
            proven = prove_by_oauth(headers, config, self._oauth.state, resource=f"{base}/mcp")
        if proven is None:
            await self._refuse(peer, headers, send, base)
            return
        if is_local and proven.proof != "oauth" and await self._is_of_application(scope):
            raise Refused(403, STARTED_HERE, STARTED_BY_SERVICE)
        # A session is opened at /mcp alone; elsewhere the header would be a conversation of the caller's own making.
        session = headers.get(b"mcp-session-id") if path == "/mcp" else None
        connection = self._connection(scope, peer, is_local=is_local)
        who = _principal(proven, headers, session, connection, is_local=is_local)
        # Without a session it may be the handshake of another client of the same name; calls are refused by the dispatcher.
        is_one_session = session is not None or path != "/mcp"
        if is_one_session and self._dispatcher.sessions.is_ended(who):
            # The protocol: a client whose session is gone begins a new one, if its credential still counts.
            await answer_json(send, 404, {"error": "The owner of this computer has ended this session."})
            return
        holds = partial(self._holds, headers, is_local)
        proves = partial(self._proves, headers, is_local)
        receive = _while_held(receive, partial(holds if is_one_session else proves, who))
        if path == "/mcp":
            scope["linker.family"] = proven.family
            scope["linker.holds"] = holds
            await self._until_revoked(scope, receive, send, headers, who, base)
            return
        if path in _READS:
            _only(scope, "GET")
            status, answer = await self._api.control(_READS[path], who)
            await answer_json(send, status, answer)
            return
        _only(scope, "POST")
        check_body_headers(headers)
        status, answer = await self._api.control(await read_body(receive), who)
        await answer_json(send, status, answer)

    async def _is_of_application(self, scope: Scope) -> bool:
        """Whether an application that a client opened asks; the consent page and the approval page are still its own."""
        server, client = scope.get("server"), scope.get("client")
        return server is not None and client is not None and await self._applications.is_of_application(server, client)

    def _holds(self, headers: Headers, is_local: bool, who: Principal) -> bool:
        """False once the owner has ended this session or replaced its credential."""
        return not self._dispatcher.sessions.is_ended(who) and self._proves(headers, is_local, who)

    def _proves(self, headers: Headers, is_local: bool, who: Principal) -> bool:
        """False once the owner has replaced this credential; an OAuth client ends by `_until_revoked`."""
        if who.proof == "oauth":
            return True
        try:
            proven = prove(headers, self._services.config, is_local=is_local)
        except ConfigInvalid:
            # Every call is refused meanwhile.
            return True
        return proven is not None and proven.id == who.id

    async def _until_revoked(
        self, scope: Scope, receive: Receive, send: Send, headers: Headers, who: Principal, base: str
    ) -> None:
        """Serve; stop sending to an OAuth client whose session ends meanwhile."""
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
            if scope["method"] == "DELETE":
                self._dispatcher.sessions.left(who)
        except NeedsGrant as lacking:
            wanted = scopes_to_request(who.grants or frozenset(), lacking.capability)
            challenge = bearer_challenge(base, error="insufficient_scope", scope=wanted)
            message = f"The owner has not given this client {group_of(lacking.capability)}."
            await self._dispatcher.refuse(lacking.call, who, PermissionDenied(message, rule="grant"))
            body = {"error": message}
            await answer_json(send, 403, body, [(b"www-authenticate", challenge)])

    def _connection(self, scope: Scope, peer: str, *, is_local: bool) -> str:
        """Tunnel requests have this machine's address too; an approval for one connection must not count for the other."""
        if is_local:
            return f"http-{peer}"
        is_tunnel = (scope.get("server") or (None, None))[1] in self._tunnel_ports
        return f"http-tunnel-{self._tunnel_provider or 'other'}-{peer}" if is_tunnel else f"http-forwarded-{peer}"

    @cached_property
    def _oauth(self) -> OAuthRoutes:
        routes = OAuthRoutes(self._services, self._dispatcher, self._refusals)
        # From the first use on: before it no OAuth client of this service can run anything.
        self._token_watch = asyncio.get_running_loop().create_task(routes.watch_owner_token())
        return routes

    def _authorities_for(self, scope: Scope, config: Config) -> Authorities:
        """Accepted names by the port the request arrived at, which no client can forge."""
        port = (scope.get("server") or (None, None))[1]
        if port not in self._tunnel_ports:
            return self._authorities(config)
        tunnel = self._tunnel
        if tunnel is None or tunnel.port != port:
            # A connection that outlived its tunnel: it never becomes a local one.
            raise Refused(421, "This service does not answer to that host name.")
        return tunnel_authorities(config, tunnel.port, has_own_name=tunnel.has_own_name)

    def _authorities(self, config: Config) -> Authorities:
        """The accepted names, computed once for each version of the config."""
        if self._known_authorities is None or self._known_authorities[0] is not config:
            self._known_authorities = (config, authorities_of(config, self._host, self._port))
        return self._known_authorities[1]

    async def _refuse(self, peer: str, headers: Headers, send: Send, base: str) -> None:
        """Answer that a credential is required, or, to a peer that guesses, how long to wait."""
        rule = why_refused(headers, self._services.config, self._oauth.state, resource=f"{base}/mcp")
        await self._refusals.note(peer, rule)
        # A token that was once valid is no guess: its holder must learn at once that it needs a refresh.
        wait_s = self._guesses.wrong(peer) if rule == "unknown_token" else None
        if wait_s is not None:
            later = [(b"retry-after", str(wait_s).encode())]
            await answer_json(send, 429, {"error": "Too many wrong credentials; wait before the next."}, later)
            return
        error = "invalid_token" if presented_token(headers) is not None else None
        challenge = [(b"www-authenticate", bearer_challenge(base, error=error))]
        await answer_json(send, 401, {"error": "A valid credential is needed."}, challenge)


def _principal(
    proven: Proven, headers: Headers, session: bytes | None, connection: str, *, is_local: bool
) -> Principal:
    if session is None and proven.proof == "oauth":
        # An OAuth client has a credential of its own, so it is one session by itself.
        session = proven.id.encode()
    label = session_label(session) if session else NO_SESSION
    agent = headers.get(b"user-agent", b"").decode("latin-1")[:80] or None
    given = None if is_local else headers.get(b"cf-ray") or headers.get(b"x-request-id")
    request = None if given is None else given.decode("latin-1")[:64]
    return Principal(
        proven.id, proven.proof, label, connection, agent, proven.grants, is_forwarded=not is_local,
        consented_as=proven.consented_as, request=request,
    )  # fmt: skip


def _while_held(receive: Receive, holds: Callable[[], bool]) -> Receive:
    """A `receive` that refuses the request when its credential has ended by the time that its body is there."""

    async def received() -> dict[str, Any]:
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body") and not holds():
            raise Refused(401, "The credential of this request has ended.", "ended_meanwhile")
        return message

    return received


def _peer(scope: Scope) -> str:
    address: str = (scope.get("client") or ("",))[0]
    return address


def _only(scope: Scope, *methods: str) -> None:
    if scope["method"] not in methods:
        raise Refused(405, f"Only {' and '.join(methods)} here.")
