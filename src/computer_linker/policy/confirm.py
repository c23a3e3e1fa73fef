"""The ledger of confirmations: who asked for exactly what, and whether a person said yes.

A confirmation is bound to the caller, the connection, the operation and the full digest of the canonical request. It is spent
once. Time is the monotonic clock the caller passes in; nothing here survives the service, and nothing here does I/O.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from computer_linker.errors import ConfirmRequired
from computer_linker.model.principal import NO_SESSION, Principal

State = Literal["waiting", "approved", "denied", "spent", "expired"]

_MAX_WAITING = 200
_MAX_WRONG_TOKENS = 10


@dataclass(frozen=True, slots=True)
class About:
    """What a person is shown beside the request itself: what it would change, or what it would touch."""

    lines: tuple[str, ...]
    holds: str = ""
    """A digest of what must still be so when the request is carried out; empty when nothing was found to hold it to."""
    photograph: Callable[[], Awaitable[bytes | None]] | None = None
    """Takes a picture (PNG) of where it would act; only for a person who is asked."""


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


class Ledger:
    """Every confirmation asked for in this service's life, bounded. One thread uses it, so each step is atomic."""

    def __init__(self) -> None:
        self._asked: dict[str, Asked] = {}
        self._by_token: dict[bytes, Asked] = {}
        self._standing: set[tuple[str, str, str]] = set()
        self._wrong: dict[str, int] = {}

    def ask(self, asked: Asked) -> None:
        """Put a request before a person."""
        self.expire(asked.asked_at)
        mine = [old for old in self._asked.values() if old.principal == asked.principal and old.state == "waiting"]
        if len(self._asked) >= _MAX_WAITING or len(mine) >= _MAX_WAITING // 4:
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
                self._standing.add((asked.principal, asked.session, asked.scope))
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
        return (who.id, who.session, scope) in self._standing

    def revoke_standing(self) -> int:
        """Take back every allowance for a session; how many there were."""
        count = len(self._standing)
        self._standing.clear()
        return count

    def spend_token(self, token: str, who: Principal, digest: str, now: float, about: About | None = None) -> None:
        """Use up a token for exactly this request, about the same as was shown. Raises ConfirmRequired for any difference."""
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
        self._use_up(asked, about)
        self._wrong.pop(who.id, None)

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

    def spend_approval(self, who: Principal, digest: str, now: float, about: About | None = None) -> bool:
        """Use up a person's yes to exactly this request. Raises ConfirmRequired when what they were shown has changed."""
        asked = self.approved(who, digest, now)
        if asked is None:
            return False
        self._use_up(asked, about)
        return True

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
        """A token that is none. Guessing costs the guesser everything that waits for them."""
        self._wrong[who.id] = self._wrong.get(who.id, 0) + 1
        if self._wrong[who.id] >= _MAX_WRONG_TOKENS:
            self._wrong[who.id] = 0
            for asked in [asked for asked in self._asked.values() if asked.principal == who.id]:
                self._forget(asked)

    def _use_up(self, asked: Asked, about: About | None) -> None:
        """One use, for what the person saw; a yes to something that is gone is gone too."""
        try:
            check_unchanged(asked, about)
        except ConfirmRequired as error:
            if error.details["changed"]:
                self._forget(asked)
            raise
        asked.state = "spent"
        self._forget(asked)

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


def check_unchanged(asked: Asked, now: About | None) -> None:
    """Refuse what is no longer what the person saw when they said yes, or cannot be looked at again."""
    was, is_now = ("" if about is None else about.holds for about in (asked.about, now))
    if not was or was == is_now:
        return
    if not is_now:
        why = f"What {asked.op} would change cannot be looked at now, so it is not sure that it is what the person was shown."
        raise ConfirmRequired(why, changed=False)
    why = f"What {asked.op} would change is no longer what the person was shown. Send the request again to ask anew."
    raise ConfirmRequired(why, changed=True)


def _is_for(asked: Asked, who: Principal, digest: str) -> bool:
    return asked.digest == digest and (asked.principal, asked.session, asked.connection) == who.bound


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
