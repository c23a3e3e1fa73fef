"""The SDK's provider protocol over our state: single-use codes, rotating refresh tokens, one audience."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from computer_linker.auth.oauth.clients import ClientDocuments
from computer_linker.auth.oauth.scopes import DEFAULT, GROUPS
from computer_linker.auth.oauth.state import ACCESS_S, CODE_S, Client, Family, OAuthState, digest

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken, AuthorizationCode, AuthorizationParams, RefreshToken
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

PENDING_S = 600
_MAX_PENDING = 500


@dataclass
class Pending:
    """An authorization request that waits for the owner's consent."""

    handle: str
    client: Client
    scopes: list[str]
    redirect_uri: str
    state: str | None
    challenge: str
    resource: str
    issuer: str
    csrf: str
    expires_at: float
    wrong_tokens: int = 0
    owner_digest: str | None = None
    """The digest of the token with which the owner signed in on the first page."""


class LinkerProvider:
    """Implements the SDK's OAuthAuthorizationServerProvider for one issuer (one address of this service)."""

    def __init__(self, state: OAuthState, documents: ClientDocuments, owner_digest: Callable[[], str | None]) -> None:
        """`owner_digest` gives the present owner token's digest: what an older token consented to is over."""
        self.state = state
        self._documents = documents
        self._owner_digest = owner_digest
        self.pending: dict[str, Pending] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._spent: dict[str, tuple[float, str]] = {}
        self._consented: dict[str, Client] = {}

    async def find_client(self, client_id: str) -> Client | None:
        """A registered client, or the one a client-id metadata document describes."""
        known = self.state.clients.get(client_id)
        if known is None and client_id.startswith("https://"):
            known = await self._documents.fetch(client_id)
        return known

    async def get_client(self, client_id: str) -> "OAuthClientInformationFull | None":
        from mcp.shared.auth import OAuthClientInformationFull

        # A consented client is stored: strangers who exhaust the document fetches must not end others' sessions.
        client = self._consented.get(client_id) or await self.find_client(client_id)
        if client is None:
            return None
        return OAuthClientInformationFull.model_validate(
            {
                "client_id": client.id,
                "client_name": client.name,
                "redirect_uris": client.redirect_uris,
                "token_endpoint_auth_method": "none",
                "grant_types": ["authorization_code", "refresh_token"],
                "scope": " ".join(GROUPS),
            }
        )

    async def register_client(self, client_info: "OAuthClientInformationFull") -> None:
        raise NotImplementedError("registration has its own route")

    async def authorize(self, client: "OAuthClientInformationFull", params: "AuthorizationParams") -> str:
        raise NotImplementedError("authorization has its own route, for the exact comparison of redirects")

    def ask(self, pending: Pending) -> None:
        """Store a request until the owner answers. Past the limit one is evicted."""
        now = time.monotonic()
        self.pending = {key: old for key, old in self.pending.items() if old.expires_at > now}
        while len(self.pending) >= _MAX_PENDING:
            del self.pending[self._to_evict()]
        self.pending[pending.handle] = pending

    def _to_evict(self) -> str:
        """The oldest request of the client with the most, unless the owner has it open: anyone can send many."""
        begun = [pending for pending in self.pending.values() if pending.owner_digest is None]
        among = begun or list(self.pending.values())
        (busiest, _), *_ = Counter(pending.client.id for pending in among).most_common(1)
        return next(pending.handle for pending in among if pending.client.id == busiest)

    def waiting(self, handle: str) -> Pending | None:
        """The request of this handle, while it can be answered."""
        found = self.pending.get(handle)
        return found if found is not None and found.expires_at > time.monotonic() else None

    def consent(
        self, pending: Pending, scopes: list[str], grants: list[str], places: dict[str, list[str]] | None = None
    ) -> tuple[str, Family]:
        """Record the owner's consent: return a code, good once and for a minute, and its family."""
        from mcp.server.auth.provider import AuthorizationCode

        del self.pending[pending.handle]
        self._consented = {key: client for key, client in self._consented.items() if self.state.has_session(key)}
        self._consented[pending.client.id] = pending.client
        owner = pending.owner_digest or ""
        family = self.state.begin(pending.client, scopes, grants, pending.resource, owner, places)
        code = secrets.token_urlsafe(32)
        record = AuthorizationCode.model_validate(
            {
                "code": code,
                "scopes": scopes,
                "expires_at": time.time() + CODE_S,
                "client_id": pending.client.id,
                "code_challenge": pending.challenge,
                "redirect_uri": pending.redirect_uri,
                "redirect_uri_provided_explicitly": True,
                "resource": pending.resource,
                # The family is the code's subject, so that the exchange needs no state of its own.
                "subject": family.id,
            }
        )
        self._codes = {key: kept for key, kept in self._codes.items() if kept.expires_at > time.time()}
        self._codes[code] = record
        return code, family

    async def load_authorization_code(
        self, client: "OAuthClientInformationFull", authorization_code: str
    ) -> "AuthorizationCode | None":
        """Load the code and use it up: a wrong verifier does not get a second try.

        A code that is used twice was stolen: all tokens issued from it are revoked.
        """
        now = time.time()
        self._spent = {key: spent for key, spent in self._spent.items() if spent[0] > now}
        key = digest(authorization_code)
        if key in self._spent:
            self.state.revoke(self._spent.pop(key)[1])
        code = self._codes.pop(authorization_code, None)
        if code is not None:
            self._spent[key] = (now + ACCESS_S, code.subject or "")
        return code

    async def exchange_authorization_code(
        self, client: "OAuthClientInformationFull", authorization_code: "AuthorizationCode"
    ) -> "OAuthToken":
        from mcp.server.auth.provider import TokenError

        family = self.state.families.get(authorization_code.subject or "")
        if family is None or self._is_over(family):
            raise TokenError("invalid_grant", "this session has been ended")
        return self._tokens(family)

    async def load_refresh_token(
        self, client: "OAuthClientInformationFull", refresh_token: str
    ) -> "RefreshToken | None":
        from mcp.server.auth.provider import RefreshToken

        family = self.state.family_of_refresh(refresh_token)
        if family is None or family.client_id != client.client_id or self._is_over(family):
            return None
        return RefreshToken(
            token=refresh_token, client_id=family.client_id, scopes=family.scopes, resource=family.resource
        )

    async def exchange_refresh_token(
        self, client: "OAuthClientInformationFull", refresh_token: "RefreshToken", scopes: list[str]
    ) -> "OAuthToken":
        from mcp.server.auth.provider import TokenError

        family = self.state.family_of_refresh(refresh_token.token)
        if family is None or not self.state.use_refresh(family, refresh_token.token):
            raise TokenError("invalid_grant", "the refresh token was used before; this session has been ended")
        return self._tokens(family)

    async def load_access_token(self, token: str) -> "AccessToken | None":
        from mcp.server.auth.provider import AccessToken

        family = self.state.family_of_access(token)
        if family is None:
            return None
        return AccessToken(token=token, client_id=family.client_id, scopes=family.scopes, resource=family.resource)

    async def revoke_token(self, token: Any) -> None:
        family = self.state.family_of_access(token.token) or self.state.family_of_refresh(token.token)
        if family is not None:
            self.state.revoke(family.id)

    async def exchange_identity_assertion(self, client: Any, params: Any) -> "OAuthToken":
        from mcp.server.auth.provider import TokenError

        raise TokenError("unsupported_grant_type", "identity assertions are not accepted")

    def _is_over(self, family: Family) -> bool:
        """Whether the owner token that consented is no longer the owner's; the session then ends here."""
        if family.owner_digest == self._owner_digest():
            return False
        self.state.revoke(family.id)
        return True

    def _tokens(self, family: Family) -> "OAuthToken":
        from mcp.shared.auth import OAuthToken

        pair = self.state.issue(family)
        return OAuthToken(
            access_token=pair.access,
            token_type="Bearer",  # noqa: S106  # the type's name, no secret
            expires_in=ACCESS_S,
            scope=" ".join(family.scopes) or DEFAULT,
            refresh_token=pair.refresh,
        )
