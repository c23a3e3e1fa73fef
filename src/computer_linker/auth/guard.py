"""From credentials to a principal. The owner token is read from the live config, so a rotation holds at once."""

from dataclasses import dataclass
from typing import Literal

from computer_linker.auth.oauth.state import OAuthState
from computer_linker.auth.owner_token import kept_digest, matches
from computer_linker.config.schema import Config
from computer_linker.model.principal import Proof
from computer_linker.policy.grants import grants_that_hold

Refusal = Literal["no_credential", "unknown_token", "owner_token_changed", "expired_token", "token_for_another_address"]
_TOKEN_HEADERS = (b"x-computer-linker-token", b"x-localport-token")


@dataclass(frozen=True, slots=True)
class Proven:
    """The authenticated caller of a request, and the kind of proof."""

    id: str
    proof: Proof
    grants: frozenset[str] | None = None
    family: str | None = None
    """The consent of an OAuth token; the unit of revocation."""
    consented_as: str | None = None
    """The name under which the owner consented."""


def prove(headers: dict[bytes, bytes], config: Config, *, is_local: bool) -> Proven | None:
    """The caller, or None. Without an owner token only a local, unforwarded request passes."""
    if config.owner_token is None:
        return Proven("loopback", "loopback") if is_local else None
    given = presented_token(headers)
    if given is not None and matches(config.owner_token, given.decode("latin-1")):
        return Proven("owner", "owner_token")
    return None


def prove_by_oauth(headers: dict[bytes, bytes], config: Config, state: OAuthState, *, resource: str) -> Proven | None:
    """The OAuth client behind an access token that was issued for exactly this resource, under the present owner token."""
    given = presented_token(headers)
    if given is None or config.owner_token is None:
        return None
    family = state.family_of_access(given.decode("latin-1"))
    if family is None or family.resource != resource:
        return None
    # A new owner token ends every session that the old one consented to.
    if family.owner_digest != kept_digest(config.owner_token):
        return None
    grants = grants_that_hold(family.grants, family.places, config.scopes)
    return Proven(family.principal, "oauth", grants, family.id, family.client_name)


def why_refused(headers: dict[bytes, bytes], config: Config, state: OAuthState, *, resource: str) -> Refusal:
    """Return why a credential was refused. It is for the owner's history: the caller never receives it."""
    given = presented_token(headers)
    if given is None:
        return "no_credential"
    family = state.family_once_of_access(given.decode("latin-1"))
    if family is None:
        return "unknown_token"
    if config.owner_token is None or family.owner_digest != kept_digest(config.owner_token):
        return "owner_token_changed"
    return "expired_token" if family.resource == resource else "token_for_another_address"


def presented_token(headers: dict[bytes, bytes]) -> bytes | None:
    """The bearer token of a request, from its header and from nowhere else."""
    authorization = headers.get(b"authorization", b"")
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() == b"bearer" and token:
        return token.strip()
    for name in _TOKEN_HEADERS:
        if headers.get(name):
            return headers[name]
    return None
