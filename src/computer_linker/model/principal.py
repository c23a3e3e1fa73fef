"""The caller, its proof of identity, and its connection."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

NO_SESSION = "http-stateless"
"""The session of callers that share one credential and name no conversation: they cannot be distinguished."""

Proof = Literal["local_user", "owner_token", "oauth", "loopback", "peer", "cli", "bridge", "approver"]
"""`approver` is a person who answers requests, and calls nothing; `cli` is given in serve/owner_calls.py alone."""


_BEHIND = ("peer:", "fleet:")
_FAR_ID = re.compile(r"[0-9a-f]{8}")
_MAX_NAME = 200


def account_of(principal: str) -> str:
    """The computer of a principal that is a client behind one, and any other principal itself.

    Limits are for accounts: a computer names its clients itself.
    """
    return principal.partition("/")[0] if principal.startswith(_BEHIND) else principal


def is_of(principal: str, account: str | None) -> bool:
    """Whether a principal is this one or a client behind it; None is every one."""
    return account is None or account in (principal, account_of(principal))


def leaves_room(principal: str, others: Iterable[str], most: int) -> bool:
    """Whether one more of this principal leaves half of `most` to others. Only clients behind a computer can be that many."""
    account = account_of(principal)
    return account == principal or sum(account_of(one) == account for one in others) < most // 2


@dataclass(frozen=True, slots=True)
class FarClient:
    """The client that another computer calls for, by that computer's claim: an opaque id, and the client's own name."""

    id: str
    name: str = ""


def parse_far(value: object) -> FarClient | None:
    """The client that another computer names as `[id, name]`; None where it names none. Raises ValueError."""
    if value is None:
        return None
    match value:
        case [str(far_id), str(name)] if _FAR_ID.fullmatch(far_id) and len(name) <= _MAX_NAME:
            return FarClient(far_id, name)
    raise ValueError("a far client is an id and a name")


@dataclass(frozen=True, slots=True)
class Principal:
    """One caller. `id` is stable for the person or client, `session` for one conversation, `connection` for one link."""

    id: str
    proof: Proof
    session: str
    connection: str
    client: str | None = None
    grants: frozenset[str] | None = None
    """Scope ids (or `scope:capability`) an OAuth client was given; None is everything the config allows."""
    is_forwarded: bool = False
    """The request came under a public name, through a proxy or tunnel, or from another machine, whatever its proof."""

    consented_as: str | None = None
    """The name under which the owner consented to an OAuth client; `client` is what it calls itself since."""

    request: str | None = None
    """The id that a tunnel or proxy gave the request, for the history; no proof of anything."""

    def behind(self, far: FarClient | None) -> "Principal":
        """The principal of a client behind this computer: it shares no handle, no undo and no approval with the others there."""
        if far is None:
            return self
        client = f"{far.name} at {self.client}" if far.name else self.client
        return replace(self, id=f"{self.id}/{far.id}", client=client)

    @property
    def is_remote(self) -> bool:
        """True for a caller not proven to be at this machine: it neither approves requests here nor manages the service."""
        return self.is_forwarded or self.proof in ("oauth", "peer")

    @property
    def is_owner(self) -> bool:
        """True for the owner's own command line, which alone may use other principals' handles."""
        return self.proof == "cli"

    def owns(self, principal_id: str) -> bool:
        """True when a handle (a process, a session, an undo) of this principal may be used by this caller.

        Clients with the same credential are one principal: the MCP clients a user starts over stdio, for the kernel proves the
        user and the client's name is its own claim; all programs with the owner token.
        """
        return self.is_owner or principal_id == self.id

    @property
    def bound(self) -> tuple[str, str, str]:
        """What an approval is bound to: principal, conversation and connection.

        Each use of the command line is its own connection, so there only the user counts.
        """
        if self.proof == "cli":
            return (self.id, NO_SESSION, "cli")
        return (self.id, self.session, self.connection)
