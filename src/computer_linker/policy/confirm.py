"""The ledger of confirmations: who requested exactly what, and whether a person approved it.

A confirmation is bound to the caller, the connection, the operation and the full digest of the canonical request. It is spent
once. Time is the monotonic clock the caller passes in; nothing here survives the service, and nothing here does I/O.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from computer_linker.errors import ConfirmRequired, Conflict, ElementNotFound, LinkError, StaleReference
from computer_linker.model.event import Approval
from computer_linker.model.principal import NO_SESSION, Principal
from computer_linker.policy.preview import escaped

State = Literal["waiting", "approved", "denied", "spent", "expired"]

DIALOG_CHARACTERS = 2600
"""A client's dialog is trusted to show this much of a question."""
_MAX_WAITING = 200
_MAX_IN_CONVERSATION = 20
_ALWAYS_WAITING = 5
"""Questions that a principal may always have, however many others wait."""
_MAX_WRONG_TOKENS = 10
_MAX_CHARACTERS = 64_000_000
"""Limit of all previews held at once."""


@dataclass(frozen=True, slots=True)
class About:
    """The preview beside the request itself: what it would change, or what it would touch."""

    lines: tuple[str, ...]
    holds: Mapping[str, str] = field(default_factory=dict)
    """State that must be unchanged right before the effect: digests by name. Empty when there is nothing to compare."""
    photograph: Callable[[], Awaitable[bytes | None]] | None = None
    """Takes a picture (PNG) of where it would act; only when a person is asked."""
    fault: LinkError | None = None
    """Why no preview could be made. An approval of what could not be shown is never used: ask again when it can be."""


@dataclass(slots=True)
class Asked:
    """One request waiting for approval. Its id is stable and not secret; the token is secret."""

    id: str
    op: str
    scope: str
    digest: str
    preview: str
    principal: str
    session: str
    connection: str
    client: str | None
    asked_at: float
    expires_at: float
    about: About | None = None
    picture: bytes | None = None
    token_hash: bytes | None = None
    state: State = "waiting"
    is_in_dialog: bool = False
    """The client was asked to show it in its own dialog; only then does an answer from there count."""
    is_dialog_over: bool = False
    """The client has shown it in its own dialog, without an answer."""
    answered: Approval | None = None
    """Who answered, and how."""

    @property
    def bound(self) -> tuple[str, str, str]:
        """What an approval is bound to: `Principal.bound` of the caller."""
        return (self.principal, self.session, self.connection)

    @property
    def asker(self) -> str:
        """The requester for display: the name that the client gives itself, and its proven identity."""
        principal = escaped(self.principal)
        return principal if self.client is None else f"{self.client} ({principal})"

    @property
    def text(self) -> str:
        """The whole question as plain text: what it would change or touch, then the exact request."""
        lines = () if self.about is None else self.about.lines
        return "\n".join([*lines, "", self.preview]) if lines else self.preview


class Ledger:
    """All confirmations of this service run, bounded. One thread uses it, so each step is atomic."""

    def __init__(self) -> None:
        self._asked: dict[str, Asked] = {}
        self._by_token: dict[bytes, Asked] = {}
        self._standing: dict[tuple[str, ...], Approval | None] = {}
        self._wrong: dict[tuple[str, str, str], int] = {}
        """Wrong tokens of each conversation that has one, so never more counters than questions."""

    def ask(self, asked: Asked) -> None:
        """Queue a request for a person."""
        self.expire(asked.asked_at)
        if not self._has_room_for(asked):
            raise ConfirmRequired(
                "Too many confirmations are waiting. Answer some of them first: computer-linker approvals."
            )
        self._asked[asked.id] = asked

    def issue_token(self, asked: Asked) -> str:
        """Issue a token for a waiting request; it is useless until a person approves the request."""
        self.ask(asked)
        token = secrets.token_urlsafe(32)
        asked.token_hash = _hash(token)
        self._by_token[asked.token_hash] = asked
        return token

    def approve(
        self, asked_id: str, now: float, *, for_session: bool = False, by: Approval | None = None
    ) -> Asked | None:
        """Approve a request. None when nothing waits under this id (answered, expired, unknown)."""
        asked = self.open(asked_id, now)
        if asked is not None:
            asked.state, asked.answered = "approved", by
            if for_session and can_stand(asked):
                self._standing[(*asked.bound, asked.scope)] = by
        return asked

    def deny(self, asked_id: str, now: float, by: Approval | None = None) -> Asked | None:
        """A person's no. One to a question without a token is kept for the next same request, which it answers."""
        asked = self.open(asked_id, now)
        if asked is not None:
            asked.state, asked.answered = "denied", by
            if asked.token_hash is not None:
                self._forget(asked)
        return asked

    def has_standing(self, who: Principal, scope: str) -> bool:
        """True when a person allowed everything in this scope for this session."""
        return (*who.bound, scope) in self._standing

    def standing(self, who: Principal, scope: str) -> Approval | None:
        """The answer that allowed everything in this scope for this session."""
        return self._standing.get((*who.bound, scope))

    def revoke_standing(self) -> int:
        """Revoke every session-wide approval; return how many there were."""
        count = len(self._standing)
        self._standing.clear()
        return count

    def forget_principal(self, principal: str) -> None:
        """Drop this caller's requests and approvals: it may come back with other rights."""
        self._standing = {bound: by for bound, by in self._standing.items() if bound[0] != principal}
        for asked in [asked for asked in self._asked.values() if asked.principal == principal]:
            self._forget(asked)

    def spend_token(self, token: str, who: Principal, digest: str, now: float) -> Asked:
        """Use up a token for exactly this request; return the approval. Raises ConfirmRequired for any difference."""
        self.expire(now)
        asked = self._by_token.get(_hash(token))
        if asked is None or not _is_for(asked, who, digest):
            self.count_wrong(who)
            raise ConfirmRequired(
                "The confirmation token is not valid for this request. A token is good once, for one caller, "
                "one connection and one exact request. Ask for a new one with confirm.issue."
            )
        if asked.state == "waiting":
            raise ConfirmRequired(
                "A person has not approved this token yet. They can: computer-linker approvals.", approvalId=asked.id
            )
        self._wrong.pop(asked.bound, None)
        return self._used_up(asked)

    def of_token(self, token: str, who: Principal, digest: str, now: float) -> Asked | None:
        """The request of a token; None when it is not good for exactly this request."""
        self.expire(now)
        asked = self._by_token.get(_hash(token))
        return asked if asked is not None and _is_for(asked, who, digest) else None

    def approved(self, who: Principal, digest: str, now: float) -> Asked | None:
        """Return an unused approval of a request that was made without a token."""
        return self._without_token("approved", who, digest, now)

    def open_question(self, who: Principal, digest: str, now: float) -> Asked | None:
        """Return a waiting request that was made without a token."""
        return self._without_token("waiting", who, digest, now)

    def spend_approval(self, who: Principal, digest: str, now: float) -> Asked | None:
        """Use up an approval of exactly this request; None when there is none."""
        asked = self.approved(who, digest, now)
        return None if asked is None else self._used_up(asked)

    def spend_denial(self, who: Principal, digest: str, now: float) -> Asked | None:
        """Use up a person's no to exactly this request that no call has brought back yet; None when there is none."""
        asked = self._without_token("denied", who, digest, now)
        if asked is not None:
            self._forget(asked)
        return asked

    def find(self, asked_id: str) -> Asked | None:
        """The request of this id while it waits, or while its answer was not brought back yet."""
        return self._asked.get(asked_id)

    def waiting(self, now: float) -> list[Asked]:
        """Return waiting requests, the oldest first."""
        self.expire(now)
        return [asked for asked in self._asked.values() if asked.state == "waiting"]

    def withdraw(self, asked: Asked) -> None:
        """Withdraw a request on behalf of its caller."""
        self._forget(asked)

    def expire(self, now: float) -> None:
        """Deny a request that was not answered in time."""
        for asked in [asked for asked in self._asked.values() if asked.expires_at <= now]:
            if asked.state != "denied":
                asked.state = "expired"
            self._forget(asked)

    def count_wrong(self, who: Principal) -> None:
        """Count an invalid token. Too many drop all waiting requests of this conversation, and none of others.

        A token is good in its own conversation only: a guess in one that has none cannot match, and is not counted.
        """
        theirs = [asked for asked in self._asked.values() if asked.bound == who.bound]
        if any(asked.token_hash is not None for asked in theirs):
            self._wrong[who.bound] = self._wrong.get(who.bound, 0) + 1
        if self._wrong.get(who.bound, 0) >= _MAX_WRONG_TOKENS:
            for asked in theirs:
                self._forget(asked)

    def _has_room_for(self, asked: Asked) -> bool:
        """Whether one more fits. A principal may use a quarter of the room, a conversation a part of that; a few always fit."""
        mine = [old for old in self._asked.values() if old.principal == asked.principal]
        count, length = len(mine) + 1, sum(len(old.preview) for old in mine) + len(asked.preview)
        here = sum(old.bound == asked.bound for old in mine) + 1
        if here > _MAX_IN_CONVERSATION or count > _MAX_WAITING // 4 or (mine and length > _MAX_CHARACTERS // 4):
            return False
        if count <= _ALWAYS_WAITING and length <= _MAX_CHARACTERS // 16:
            return True
        everything = sum(len(old.preview) for old in self._asked.values()) + len(asked.preview)
        return len(self._asked) < _MAX_WAITING and everything <= _MAX_CHARACTERS

    def _used_up(self, asked: Asked) -> Asked:
        """Remove an approval: it is used once, whatever the result."""
        asked.state = "spent"
        self._forget(asked)
        return asked

    def _without_token(self, state: State, who: Principal, digest: str, now: float) -> Asked | None:
        self.expire(now)
        fitting = (one for one in self._asked.values() if one.state == state and one.token_hash is None)
        return next((one for one in fitting if _is_for(one, who, digest)), None)

    def open(self, asked_id: str, now: float) -> Asked | None:
        """The request of this id while it waits for an answer."""
        self.expire(now)
        asked = self._asked.get(asked_id)
        return asked if asked is not None and asked.state == "waiting" else None

    def _forget(self, asked: Asked) -> None:
        self._asked.pop(asked.id, None)
        if asked.token_hash is not None:
            self._by_token.pop(asked.token_hash, None)
            if not any(other.bound == asked.bound for other in self._by_token.values()):
                self._wrong.pop(asked.bound, None)


class Denied(ConfirmRequired):
    """A person denied the request."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(f"A person said no to {asked.op}.", approvalId=asked.id, answer="no")
        self.approval = asked.answered


def can_stand(asked: Asked) -> bool:
    """Whether an approval can hold for the session. Without a session it would hold for everyone with the same credential."""
    return asked.session != NO_SESSION


def check_unchanged(asked: Asked, now: About | None) -> None:
    """Refuse when the state differs from what the person approved, or cannot be read again.

    Raises:
        StaleReference, ElementNotFound: the target is gone.
        Conflict: the target changed, or cannot be read.
    """
    was, is_now = asked.about or About(()), now or About(())
    fault = is_now.fault or was.fault
    if isinstance(fault, StaleReference | ElementNotFound):
        raise fault
    if fault is not None:
        raise Conflict(
            f"What {asked.op} is for could not be looked at, so nothing was done. {fault.message}", changed=[]
        )
    changed = sorted(name for name in {*was.holds, *is_now.holds} if was.holds.get(name) != is_now.holds.get(name))
    if changed:
        raise Conflict(
            f"What {asked.op} is for is no longer what the person was shown ({', '.join(changed[:3])}), so nothing was done. "
            "Their yes is used up: send the request again to ask anew.",
            changed=changed[:50],
        )


def fits_a_dialog(asked: Asked) -> bool:
    """True when a client's dialog is trusted to show the whole question; it does not report how much of a long text it shows."""
    return len(asked.text) <= DIALOG_CHARACTERS


def counts_as_a_yes(who: Principal, asked: Asked) -> bool:
    """Whether an approval that the client itself reports from its own dialog counts as a person's.

    The only place that decides it. A remote client shows its dialogs elsewhere, so it never answers for the person here.
    """
    return not who.is_remote and fits_a_dialog(asked)


def _is_for(asked: Asked, who: Principal, digest: str) -> bool:
    return asked.digest == digest and asked.bound == who.bound


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
