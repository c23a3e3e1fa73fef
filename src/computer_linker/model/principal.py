"""The caller, its proof of identity, and its connection."""

from dataclasses import dataclass
from typing import Literal

NO_SESSION = "http-stateless"
"""The session of callers that share one credential and name no conversation: they cannot be distinguished."""

Proof = Literal["local_user", "owner_token", "oauth", "loopback", "peer", "cli", "bridge", "approver"]
"""`approver` is a person who answers requests, and calls nothing; `cli` is given in serve/owner_calls.py alone."""


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
