"""The OAuth routes: metadata, registration, authorization, consent, token and revocation."""

import asyncio
import re
import secrets
import time
from typing import Any

from computer_linker.auth.oauth.clients import ClientDocuments
from computer_linker.auth.oauth.page import error_page
from computer_linker.auth.oauth.provider import PENDING_S, LinkerProvider, Pending
from computer_linker.auth.oauth.redirects import is_allowed_redirect, is_registered, with_parameters
from computer_linker.auth.oauth.scopes import DEFAULT, GROUPS
from computer_linker.auth.oauth.state import Family, OAuthState
from computer_linker.auth.owner_token import kept_digest
from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import ConfigInvalid, InvalidRequest
from computer_linker.model.json_text import read_json
from computer_linker.services import Services
from computer_linker.transports.http import consent
from computer_linker.transports.http.body import (
    Receive,
    Scope,
    Send,
    answer_json,
    bounded_body,
    check_form_headers,
    every_value,
    replayed,
    single_values,
)
from computer_linker.transports.http.guards import Headers, Refused, check_body_headers
from computer_linker.transports.refusals import RefusalNotes

PATHS = frozenset({"/authorize", "/token", "/register", "/revoke", consent.PATH})
_RESOURCE = "/.well-known/oauth-protected-resource"
_RESOURCE_PATHS = (_RESOURCE, f"{_RESOURCE}/mcp")
_SERVER = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
_SERVER_PATHS = (*_SERVER, *(f"{path}/mcp" for path in _SERVER))
_GRANTS = ["authorization_code", "refresh_token"]
_WATCH_S = 1.0
_MAX_STATE = 8 * 1024
_S256 = re.compile(r"[A-Za-z0-9_-]{43}")
"""A SHA-256 digest in the form of a PKCE challenge."""


def is_oauth_path(path: str) -> bool:
    """True for a route that serves clients without a credential."""
    return path in PATHS or path in _RESOURCE_PATHS or path in _SERVER_PATHS


def bearer_challenge(base: str, *, error: str | None = None, scope: str = DEFAULT) -> bytes:
    """The value of WWW-Authenticate: where the metadata is, and which scope suffices."""
    parts = [f'resource_metadata="{base}{_RESOURCE}/mcp"', f'scope="{scope}"']
    if error is not None:
        parts.insert(0, f'error="{error}"')
    return ("Bearer " + ", ".join(parts)).encode()


class OAuthRoutes:
    """Answers the OAuth routes for the origin of a request."""

    def __init__(self, services: Services, dispatcher: Dispatcher, refusals: RefusalNotes) -> None:
        self._services = services
        self._refusals = refusals
        self.state = services.use(OAuthState)
        self.provider = LinkerProvider(self.state, ClientDocuments(), self._owner_digest)
        self._consent = consent.Consent(services, self.provider, dispatcher, refusals)

    async def serve(self, scope: Scope, receive: Receive, send: Send, headers: Headers, base: str) -> None:
        """Answer one request. `base` is the origin the client used, which is the issuer."""
        path, method = scope["path"], scope["method"]
        if path in _RESOURCE_PATHS and method in ("GET", "HEAD"):
            await answer_json(send, 200, self._resource_metadata(base))
        elif path in _SERVER_PATHS and method in ("GET", "HEAD"):
            await answer_json(send, 200, _server_metadata(base))
        elif self._services.config.owner_token is None:
            raise Refused(404, "Without an owner token no one can consent.")
        elif path == "/register" and method == "POST":
            check_body_headers(headers)
            await self._register(receive, send)
        elif path == "/authorize" and method == "GET":
            await self._authorize(scope, send, base)
        elif path == consent.PATH and method == "POST":
            await self._consent.serve(scope, receive, send, headers, base)
        elif path in ("/token", "/revoke") and method == "POST":
            check_form_headers(headers)
            await self._by_the_sdk(scope, receive, send, f"{base}/mcp")
        else:
            raise Refused(405, "That method is not served here.")

    async def watch_owner_token(self) -> None:
        """Stop what clients run under the consent of an owner token, once that token was replaced."""
        while True:
            try:
                digest = self._owner_digest()
            except ConfigInvalid:
                pass
            else:
                self.state.end_stale(digest)
            await asyncio.sleep(_WATCH_S)

    def _owner_digest(self) -> str | None:
        kept = self._services.config.owner_token
        return None if kept is None else kept_digest(kept)

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
            request = read_json(await bounded_body(receive))
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
                "grant_types": _GRANTS,
                "response_types": ["code"],
                "scope": " ".join(GROUPS),
            },
        )

    async def _authorize(self, scope: Scope, send: Send, base: str) -> None:
        """Check the request. Until client and redirect are verified there is an error page, never a redirect."""
        asked, twice = single_values(scope["query_string"].decode("latin-1"))
        client = await self.provider.find_client(asked.get("client_id", ""))
        if client is None:
            await consent.page(send, 400, error_page("The client is not known here. It may have to register again."))
            return
        redirect = asked.get("redirect_uri", "")
        if not is_registered(redirect, client.redirect_uris):
            await consent.page(send, 400, error_page("The client asked for an address it did not register."))
            return
        error = "invalid_request" if twice else _problem(asked, f"{base}/mcp")
        if error is not None:
            await consent.redirect(send, with_parameters(redirect, error=error, state=asked.get("state"), iss=base))
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
        await self._consent.begin(send, pending)

    async def _by_the_sdk(self, scope: Scope, receive: Receive, send: Send, resource: str) -> None:
        """Token and revocation: the SDK's handlers over our provider."""
        from mcp.server.auth.handlers.revoke import RevocationHandler
        from mcp.server.auth.handlers.token import TokenHandler
        from mcp.server.auth.middleware.client_auth import ClientAuthenticator
        from starlette.requests import Request

        body = await bounded_body(receive)
        fields = every_value(body.decode("utf-8", "replace"))
        if len({name for name, _ in fields}) != len(fields):
            await answer_json(send, 400, {"error": "invalid_request", "error_description": "a field is given twice"})
            return
        if scope["path"] == "/token" and dict(fields).get("grant_type", _GRANTS[0]) not in _GRANTS:
            await answer_json(send, 400, {"error": "unsupported_grant_type"})
            return
        if not _is_ours(dict(fields).get("resource"), resource):
            await answer_json(
                send, 400, {"error": "invalid_target", "error_description": f"tokens here are for {resource}"}
            )
            return
        if scope["path"] == "/revoke" and "client_secret" not in dict(fields):
            # The SDK's form requires the field even from public clients, and all of ours are public.
            body += b"&client_secret="
        authenticator = ClientAuthenticator(self.provider)
        handler: Any = (
            TokenHandler(self.provider, authenticator)
            if scope["path"] == "/token"
            else RevocationHandler(self.provider, authenticator)
        )
        before = dict(self.state.families)
        response = await handler.handle(Request(scope, replayed(body, receive)))
        if response.status_code == 400:
            await self._audit_theft(before, (scope.get("client") or ("",))[0])
        await response(scope, receive, send)

    async def _audit_theft(self, before: dict[str, Family], peer: str) -> None:
        """Audit a session that just ended because its code or refresh token was used twice."""
        ended = [family for key, family in before.items() if key not in self.state.families]
        if any(family.owner_digest == self._owner_digest() for family in ended):
            await self._refusals.note(peer, "token_used_twice")


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
        "grant_types_supported": _GRANTS,
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


def _problem(asked: dict[str, str], resource: str) -> str | None:
    """The OAuth error of a request whose client and redirect are valid."""
    for name in ("request", "request_uri"):
        # Parameters nested inside another one have no effect; the client gets an error instead of a silent loss.
        if name in asked:
            return f"{name}_not_supported"
    if asked.get("response_type") != "code":
        return "unsupported_response_type"
    is_by_query = asked.get("response_mode", "query") == "query"
    # The method is required: by the specification its default is `plain`.
    is_bound = asked.get("code_challenge_method") == "S256" and _S256.fullmatch(asked.get("code_challenge", ""))
    if not is_by_query or not is_bound or len(asked.get("state", "")) > _MAX_STATE:
        return "invalid_request"
    return None if _is_ours(asked.get("resource"), resource) else "invalid_target"


def _is_ours(asked: str | None, resource: str) -> bool:
    """Whether the resource named by a request is this one; our bare origin counts as well."""
    return asked is None or asked.rstrip("/") in (resource, resource.removesuffix("/mcp"))
