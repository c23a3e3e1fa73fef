"""The ledger of confirmations: who asked for exactly what, and whether a person said yes.

A confirmation is bound to the caller, the connection, the operation and the full digest of the canonical request. It is spent
once. Time is the monotonic clock the caller passes in; nothing here survives the service, and nothing here does I/O.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from computer_linker.errors import ConfirmRequired, Conflict, ElementNotFound, LinkError, StaleReference
from computer_linker.model.principal import NO_SESSION, Principal
from computer_linker.policy.preview import escaped

State = Literal["waiting", "approved", "denied", "spent", "expired"]

DIALOG_CHARACTERS = 2600
"""A client's dialog is trusted to show so much of a question."""
_MAX_WAITING = 200
_MAX_WRONG_TOKENS = 10
_MAX_CHARACTERS = 64_000_000
"""Of all previews that are kept at once."""


@dataclass(frozen=True, slots=True)
class About:
    """What a person is shown beside the request itself: what it would change, or what it would touch."""

    lines: tuple[str, ...]
    holds: Mapping[str, str] = field(default_factory=dict)
    """What must still be so right before the effect: digests by what they are of. Empty when there is nothing to hold it to."""
    photograph: Callable[[], Awaitable[bytes | None]] | None = None
    """Takes a picture (PNG) of where it would act; only for a person who is asked."""
    fault: LinkError | None = None
    """Why it could not be looked at. A yes to what could not be shown is never used: ask again when it can be."""


@dataclass(slots=True)
class Asked:
    """One request that waits for a person. Its id is stable and is not a secret; the token is."""

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
    """The client was asked to show it in its own dialog; only then is an answer from there one."""
    is_dialog_over: bool = False
    """The client has shown it in its own dialog, without an answer."""

    @property
    def bound(self) -> tuple[str, str, str]:
        """Whose yes it will be: `Principal.bound` of the caller."""
        return (self.principal, self.session, self.connection)

    @property
    def asker(self) -> str:
        """Who asks, for a person: the name that the client gives itself, and who it is known to be."""
        principal = escaped(self.principal)
        return principal if self.client is None else f"{self.client} ({principal})"

    @property
    def text(self) -> str:
        """The whole question for a place of plain text: what it would change or touch, then the exact request."""
        lines = () if self.about is None else self.about.lines
        return "\n".join([*lines, "", self.preview]) if lines else self.preview


class Ledger:
    """Every confirmation asked for in this service's life, bounded. One thread uses it, so each step is atomic."""

    def __init__(self) -> None:
        self._asked: dict[str, Asked] = {}
        self._by_token: dict[bytes, Asked] = {}
        self._standing: set[tuple[str, ...]] = set()
        self._wrong: dict[tuple[str, str, str], int] = {}
        """Wrong tokens of each conversation that has one, so never more counters than questions."""

    def ask(self, asked: Asked) -> None:
        """Put a request before a person."""
        self.expire(asked.asked_at)
        mine = [old for old in self._asked.values() if old.principal == asked.principal and old.state == "waiting"]
        length = sum(len(old.preview) for old in self._asked.values()) + len(asked.preview)
        if len(self._asked) >= _MAX_WAITING or len(mine) >= _MAX_WAITING // 4 or length > _MAX_CHARACTERS:
            raise ConfirmRequired(
                "Too many confirmations are waiting. Answer some of them first: computer-linker approvals."
            )
        self._asked[asked.id] = asked

    def issue_token(self, asked: Asked) -> str:
        """A token for a request that is before a person; worth nothing until they approve it."""
        self.ask(asked)
        token = secrets.token_urlsafe(32)
        asked.token_hash = _hash(token)
        self._by_token[asked.token_hash] = asked
        return token

    def approve(self, asked_id: str, now: float, *, for_session: bool = False) -> Asked | None:
        """A person's yes. None when there is nothing waiting under this id (answered, expired, unknown)."""
        asked = self._waiting(asked_id, now)
        if asked is not None:
            asked.state = "approved"
            # Without a session the allowance would hold for whoever else comes with the same credential.
            if for_session and asked.session != NO_SESSION:
                self._standing.add((*asked.bound, asked.scope))
        return asked

    def deny(self, asked_id: str, now: float) -> Asked | None:
        """A person's no."""
        asked = self._waiting(asked_id, now)
        if asked is not None:
            asked.state = "denied"
            self._forget(asked)
        return asked

    def has_standing(self, who: Principal, scope: str) -> bool:
        """True when a person allowed everything in this scope for this session."""
        return (*who.bound, scope) in self._standing

    def revoke_standing(self) -> int:
        """Take back every allowance for a session; how many there were."""
        count = len(self._standing)
        self._standing.clear()
        return count

    def forget_principal(self, principal: str) -> None:
        """Drop what this caller asked for and was allowed: it may come back with other rights."""
        self._standing = {standing for standing in self._standing if standing[0] != principal}
        for asked in [asked for asked in self._asked.values() if asked.principal == principal]:
            self._forget(asked)

    def spend_token(self, token: str, who: Principal, digest: str, now: float) -> Asked:
        """Use up a token for exactly this request; the yes. Raises ConfirmRequired for any difference."""
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
        """What a person said yes to, asked for earlier without a token and not used yet."""
        return self._without_token("approved", who, digest, now)

    def open_question(self, who: Principal, digest: str, now: float) -> Asked | None:
        """What was asked without a token and still waits."""
        return self._without_token("waiting", who, digest, now)

    def spend_approval(self, who: Principal, digest: str, now: float) -> Asked | None:
        """Use up a person's yes to exactly this request; None when there is none."""
        asked = self.approved(who, digest, now)
        return None if asked is None else self._used_up(asked)

    def find(self, asked_id: str) -> Asked | None:
        """The request of this id while it is waiting or approved."""
        return self._asked.get(asked_id)

    def waiting(self, now: float) -> list[Asked]:
        """What waits for a person, the oldest first."""
        self.expire(now)
        return [asked for asked in self._asked.values() if asked.state == "waiting"]

    def withdraw(self, asked: Asked) -> None:
        """The caller no longer wants it."""
        self._forget(asked)

    def expire(self, now: float) -> None:
        """Silence is a no."""
        for asked in [asked for asked in self._asked.values() if asked.expires_at <= now]:
            asked.state = "expired"
            self._forget(asked)

    def count_wrong(self, who: Principal) -> None:
        """A token that is none. Guessing costs the guesser all that waits for this conversation, and takes nothing from others.

        A token is good in its own conversation only: a guess in one that has none cannot hit, and is not counted.
        """
        theirs = [asked for asked in self._asked.values() if asked.bound == who.bound]
        if any(asked.token_hash is not None for asked in theirs):
            self._wrong[who.bound] = self._wrong.get(who.bound, 0) + 1
        if self._wrong.get(who.bound, 0) >= _MAX_WRONG_TOKENS:
            for asked in theirs:
                self._forget(asked)

    def _used_up(self, asked: Asked) -> Asked:
        """One use, whatever comes of it."""
        asked.state = "spent"
        self._forget(asked)
        return asked

    def _without_token(self, state: State, who: Principal, digest: str, now: float) -> Asked | None:
        self.expire(now)
        fitting = (one for one in self._asked.values() if one.state == state and one.token_hash is None)
        return next((one for one in fitting if _is_for(one, who, digest)), None)

    def _waiting(self, asked_id: str, now: float) -> Asked | None:
        self.expire(now)
        asked = self._asked.get(asked_id)
        return asked if asked is not None and asked.state == "waiting" else None

    def _forget(self, asked: Asked) -> None:
        self._asked.pop(asked.id, None)
        if asked.token_hash is not None:
            self._by_token.pop(asked.token_hash, None)
            if not any(other.bound == asked.bound for other in self._by_token.values()):
                self._wrong.pop(asked.bound, None)


def check_unchanged(asked: Asked, now: About | None) -> None:
    """Refuse what is no longer what the person saw when they said yes, or cannot be looked at again.

    Raises:
        StaleReference, ElementNotFound: what it was for is gone.
        Conflict: it is there and is another, or cannot be looked at.
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
    """True when a client's dialog is taken to show the whole question; how much of a long text it shows, it does not say."""
    return len(asked.text) <= DIALOG_CHARACTERS


def counts_as_a_yes(who: Principal, asked: Asked) -> bool:
    """Whether a yes that this client itself brings, from a dialog it says it showed, counts as a person's.

    The one place that decides it. A client elsewhere shows its dialogs elsewhere, so it never answers for the person here.
    """
    return not who.is_remote and fits_a_dialog(asked)


def _is_for(asked: Asked, who: Principal, digest: str) -> bool:
    return asked.digest == digest and asked.bound == who.bound


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
