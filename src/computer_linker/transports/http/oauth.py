"""The OAuth routes: metadata, registration, authorization, consent, token and revocation."""

import hashlib
import hmac
import secrets
import time
from base64 import b64encode
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from computer_linker.auth.oauth.clients import ClientDocuments
from computer_linker.auth.oauth.page import STYLE, consent_page, error_page
from computer_linker.auth.oauth.provider import PENDING_S, LinkerProvider, Pending
from computer_linker.auth.oauth.redirects import is_allowed_redirect, with_parameters
from computer_linker.auth.oauth.scopes import DEFAULT, GROUPS, grants_for
from computer_linker.auth.oauth.state import OAuthState
from computer_linker.auth.owner_token import matches
from computer_linker.errors import InvalidRequest
from computer_linker.model.json_text import read_json
from computer_linker.registry.services import Services
from computer_linker.transports.http.body import Receive, Scope, Send, answer_json, read_body, replayed
from computer_linker.transports.http.guards import Headers, Refused

PATHS = frozenset({"/authorize", "/token", "/register", "/revoke", "/oauth/consent"})
_RESOURCE = "/.well-known/oauth-protected-resource"
_SERVER = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
_COOKIE = "computer-linker-consent"
_MAX_WRONG_TOKENS = 5
_MAX_FORM = 64 * 1024
_STYLE_HASH = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


def is_oauth_path(path: str) -> bool:
    """True for a route that serves clients without a credential."""
    return path in PATHS or path.startswith(_RESOURCE) or path.startswith(_SERVER)


def bearer_challenge(base: str, *, error: str | None = None, scope: str = DEFAULT) -> bytes:
    """What WWW-Authenticate says: where the metadata is, and which scope would do."""
    parts = [f'resource_metadata="{base}{_RESOURCE}/mcp"', f'scope="{scope}"']
    if error is not None:
        parts.insert(0, f'error="{error}"')
    return ("Bearer " + ", ".join(parts)).encode()


class OAuthRoutes:
    """Answers the OAuth routes for the address a request was sent to."""

    def __init__(self, services: Services, documents: ClientDocuments | None = None) -> None:
        self._services = services
        self.state = services.use(OAuthState)
        self.provider = LinkerProvider(self.state, documents or ClientDocuments())

    async def serve(self, scope: Scope, receive: Receive, send: Send, headers: Headers, base: str) -> None:
        """Answer one request. `base` is the origin the client used, which is the issuer."""
        path, method = scope["path"], scope["method"]
        if path.startswith(_RESOURCE):
            await answer_json(send, 200, self._resource_metadata(base))
        elif path.startswith(_SERVER):
            await answer_json(send, 200, _server_metadata(base))
        elif self._services.config.owner_token is None:
            raise Refused(404, "Without an owner token there is nobody who could consent.")
        elif path == "/register" and method == "POST":
            await self._register(receive, send)
        elif path == "/authorize" and method == "GET":
            await self._authorize(scope, send, base)
        elif path == "/oauth/consent" and method in ("GET", "POST"):
            await self._consent(scope, receive, send, headers, base)
        elif path in ("/token", "/revoke") and method == "POST":
            await self._by_the_sdk(scope, receive, send)
        else:
            raise Refused(405, "That method is not served here.")

    def _resource_metadata(self, base: str) -> dict[str, Any]:
        return {
            "resource": f"{base}/mcp",
            "authorization_servers": [base],
            "scopes_supported": list(GROUPS),
            "bearer_methods_supported": ["header"],
            "resource_name": "Computer Linker",
        }

    async def _register(self, receive: Receive, send: Send) -> None:
        try:
            request = read_json(await _bounded(receive))
        except InvalidRequest as error:
            await answer_json(send, 400, {"error": "invalid_client_metadata", "error_description": error.message})
            return
        redirects = request.get("redirect_uris") if type(request) is dict else None
        if type(redirects) is not list or not 0 < len(redirects) <= 10 or not all(map(is_allowed_redirect, redirects)):
            problem = "redirect_uris must be https, or http on loopback"
            await answer_json(send, 400, {"error": "invalid_redirect_uri", "error_description": problem})
            return
        name = request.get("client_name")
        client = self.state.register(name[:100] if type(name) is str and name else "An unnamed client", redirects)
        if client is None:
            raise Refused(429, "Too many clients are registered. The owner can remove some: computer-linker sessions.")
        await answer_json(
            send,
            201,
            {
                "client_id": client.id,
                "client_id_issued_at": int(client.registered_at),
                "client_name": client.name,
                "redirect_uris": client.redirect_uris,
                "token_endpoint_auth_method": "none",
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "scope": " ".join(GROUPS),
            },
        )

    async def _authorize(self, scope: Scope, send: Send, base: str) -> None:
        """Check the request. Until client and redirect are proven there is an error page, never a redirect."""
        asked = _single_values(scope["query_string"].decode("latin-1"))
        client = await self.provider.find_client(asked.get("client_id", ""))
        if client is None:
            await _page(send, 400, error_page("The client is not known here. It may have to register again."))
            return
        redirect = asked.get("redirect_uri", "")
        if redirect not in client.redirect_uris:
            await _page(send, 400, error_page("The client asked for an address it did not register."))
            return
        error = _problem(asked, f"{base}/mcp")
        if error is not None:
            await _redirect(send, with_parameters(redirect, error=error, state=asked.get("state"), iss=base))
            return
        wanted = [name for name in asked.get("scope", DEFAULT).split() if name in GROUPS] or [DEFAULT]
        pending = Pending(
            handle=secrets.token_urlsafe(24),
            client=client,
            scopes=wanted,
            redirect_uri=redirect,
            state=asked.get("state"),
            challenge=asked["code_challenge"],
            resource=f"{base}/mcp",
            issuer=base,
            csrf=secrets.token_urlsafe(24),
            expires_at=time.monotonic() + PENDING_S,
        )
        self.provider.ask(pending)
        cookie = _cookie(base, pending)
        await _redirect(send, f"{base}/oauth/consent?request={pending.handle}", [(b"set-cookie", cookie.encode())])

    async def _consent(self, scope: Scope, receive: Receive, send: Send, headers: Headers, base: str) -> None:
        if scope["method"] == "GET":
            form = _single_values(scope["query_string"].decode("latin-1"))
            pending = self.provider.waiting(form.get("request", ""))
            if pending is None or not _same_browser(headers, pending):
                raise Refused(400, "This request is no longer open. Start again from the client.")
            await self._show(send, pending)
            return
        raw = (await _bounded(receive)).decode("utf-8", "replace")
        values = parse_qsl(raw, keep_blank_values=True, max_num_fields=200)
        form = dict(values)
        pending = self.provider.waiting(form.get("request", ""))
        if pending is None or pending.issuer != base or not _same_browser(headers, pending):
            raise Refused(400, "This request is no longer open. Start again from the client.")
        if not hmac.compare_digest(form.get("csrf", "").encode(), pending.csrf.encode()):
            raise Refused(403, "The form is not the one that was shown.")
        if form.get("answer") != "allow":
            del self.provider.pending[pending.handle]
            refusal = with_parameters(pending.redirect_uri, error="access_denied", state=pending.state, iss=base)
            await _redirect(send, refusal)
            return
        await self._allow(send, pending, values, form.get("owner_token", ""))

    async def _allow(self, send: Send, pending: Pending, values: list[tuple[str, str]], token: str) -> None:
        config = self._services.config
        if config.owner_token is None or not matches(config.owner_token, token):
            pending.wrong_tokens += 1
            if pending.wrong_tokens >= _MAX_WRONG_TOKENS:
                del self.provider.pending[pending.handle]
                raise Refused(403, "Too many wrong tokens. Start again from the client.")
            await self._show(send, pending, "That is not the owner token.", status=403)
            return
        groups = [value for name, value in values if name == "group" and value in pending.scopes]
        chosen = [value for name, value in values if name == "scope"]
        grants = grants_for(groups, [scope for scope in config.scopes if scope.id in chosen])
        if not grants:
            await self._show(send, pending, "Choose at least one thing it may do, and where.", status=400)
            return
        code = self.provider.consent(pending, groups, grants, token)
        await _redirect(send, with_parameters(pending.redirect_uri, code=code, state=pending.state, iss=pending.issuer))

    async def _show(self, send: Send, pending: Pending, error: str | None = None, status: int = 200) -> None:
        config = self._services.config
        target = urlsplit(pending.redirect_uri)
        html = consent_page(pending, config.scopes, config.machine_name, error)
        await _page(send, status, html, f"{target.scheme}://{target.netloc}")

    async def _by_the_sdk(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Token and revocation, by the SDK's handlers over our provider."""
        from mcp.server.auth.handlers.revoke import RevocationHandler
        from mcp.server.auth.handlers.token import TokenHandler
        from mcp.server.auth.middleware.client_auth import ClientAuthenticator
        from starlette.requests import Request

        body = await _bounded(receive)
        fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=50)
        if len({name for name, _ in fields}) != len(fields):
            await answer_json(send, 400, {"error": "invalid_request", "error_description": "a field is given twice"})
            return
        if scope["path"] == "/revoke" and "client_secret" not in dict(fields):
            # The SDK's form wants the field even from clients that have no secret, which are all of ours.
            body += b"&client_secret="
        authenticator = ClientAuthenticator(self.provider)
        handler: Any = (
            TokenHandler(self.provider, authenticator)
            if scope["path"] == "/token"
            else RevocationHandler(self.provider, authenticator)
        )
        response = await handler.handle(Request(scope, replayed(body, receive)))
        await response(scope, receive, send)


def _server_metadata(base: str) -> dict[str, Any]:
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}/authorize",
        "token_endpoint": f"{base}/token",
        "registration_endpoint": f"{base}/register",
        "revocation_endpoint": f"{base}/revoke",
        "scopes_supported": list(GROUPS),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


def _problem(asked: dict[str, str], resource: str) -> str | None:
    """The OAuth error of a request whose client and redirect are right."""
    if asked.get("response_type") != "code":
        return "unsupported_response_type"
    challenge = asked.get("code_challenge", "")
    # The method must be said: left out, it would mean `plain`.
    if asked.get("code_challenge_method") != "S256" or not (len(challenge) == 43 and challenge.isascii()):
        return "invalid_request"
    if asked.get("resource", resource).rstrip("/") not in (resource, resource.removesuffix("/mcp")):
        return "invalid_target"
    return None


def _single_values(query: str) -> dict[str, str]:
    """The query's values. A parameter given twice has no meaning, and counts as not given."""
    values: dict[str, str] = {}
    twice: set[str] = set()
    for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=50):
        if name in values:
            twice.add(name)
        values[name] = value
    return {name: value for name, value in values.items() if name not in twice}


async def _bounded(receive: Receive) -> bytes:
    body = await read_body(receive)
    if len(body) > _MAX_FORM:
        raise Refused(413, "The form is too large.")
    return body


def _cookie(base: str, pending: Pending) -> str:
    """Ties the consent to the browser that asked for it."""
    secure = base.startswith("https://")
    name = f"__Host-{_COOKIE}" if secure else _COOKIE
    value = hashlib.sha256(pending.csrf.encode()).hexdigest()
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={PENDING_S}{'; Secure' if secure else ''}"


def _same_browser(headers: Headers, pending: Pending) -> bool:
    wanted = hashlib.sha256(pending.csrf.encode()).hexdigest()
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name in (_COOKIE, f"__Host-{_COOKIE}") and hmac.compare_digest(value.encode(), wanted.encode()):
            return True
    return False


async def _redirect(send: Send, url: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    given = [(b"location", url.encode()), (b"content-length", b"0"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 302, "headers": given + (headers or [])})
    await send({"type": "http.response.body", "body": b""})


async def _page(send: Send, status: int, html: str, form_target: str = "") -> None:
    body = html.encode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self' {form_target}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"content-security-policy", policy.encode()),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
