"""The ledger of requests: who requested exactly what, and whether a person approved it.

An approval is bound to the caller, the connection, the operation and the full digest of the canonical request. It is spent
once. Time is the monotonic clock the caller passes in; nothing here survives the service, and nothing here does I/O.
"""

import hashlib
import secrets
from collections import deque

from computer_linker.approvals.request import ApprovalRequest, Denied, State
from computer_linker.errors import ConfirmRequired, DeniedByPerson, LimitExceeded
from computer_linker.model.event import NOT_SHOWN, TOO_MANY, Approval, Way
from computer_linker.model.principal import Principal, account_of, is_of
from computer_linker.policy.visible_text import client_label

_MAX_WAITING = 200
_MAX_IN_CONVERSATION = 20
_ALWAYS_WAITING = 5
"""Requests that a principal may always have, however many others wait."""
_MAX_WRONG_TOKENS = 10
_MAX_CHARACTERS = 64_000_000
"""Limit of all previews held at once."""
_NOES, _NOES_WITHIN_S, _QUIET_S = 3, 300.0, 60.0
"""After this many noes in a row to one client, its requests are not shown for a while.

A client names itself, so twice as many to one principal, under whatever names, are enough for all of its clients.
"""


class Ledger:
    """All requests of this service run, bounded. One thread uses it, so each step is atomic."""

    def __init__(self) -> None:
        self._asked: dict[str, ApprovalRequest] = {}
        self._by_token: dict[bytes, ApprovalRequest] = {}
        self._noes: dict[tuple[str, str | None], deque[float]] = {}
        """When the owner last said no to a client, and under None to its whole principal, without a yes since."""
        self._wrong: dict[tuple[str, str, str], int] = {}
        """Wrong tokens of each conversation that has one, so never more counters than requests."""

    def ask(self, asked: ApprovalRequest) -> None:
        """Queue a request for a person."""
        self.expire(asked.asked_at)
        self._refuse_when_quiet(asked)
        if not self._has_room_for(asked):
            raise LimitExceeded(
                f"{TOO_MANY}, so {NOT_SHOWN}. The owner answers some of them first: computer-linker approvals.",
                answer="none",
            )
        self._asked[asked.id] = asked

    def issue_token(self, asked: ApprovalRequest) -> str:
        """Issue a token for a waiting request; it is useless until a person approves the request."""
        self.ask(asked)
        token = secrets.token_urlsafe(32)
        asked.token_hash = _hash(token)
        self._by_token[asked.token_hash] = asked
        return token

    def approve(self, asked_id: str, now: float, by: Approval | None = None) -> ApprovalRequest | None:
        """Approve a request. None when nothing waits under this id (answered, expired, unknown)."""
        asked = self.open(asked_id, now)
        if asked is not None:
            asked.state, asked.answered = "approved", by
            for counted in _counted(asked):
                self._noes.pop(counted, None)
        return asked

    def deny(self, asked_id: str, now: float, by: Approval | None = None) -> ApprovalRequest | None:
        """A person's no. It is kept for the next same request, which it answers."""
        asked = self.open(asked_id, now)
        if asked is not None:
            asked.state, asked.answered = "denied", by
            if by is None or by.way != "dialog":
                self._count_no(asked, now)
        return asked

    def forget_principal(self, principal: str) -> None:
        """Drop this caller's requests and approvals: it may come back with other rights."""
        for asked in [asked for asked in self._asked.values() if is_of(asked.principal, principal)]:
            self._forget(asked)

    def forget_conversation(self, bound: tuple[str, str, str]) -> int:
        """Drop the requests and approvals of one conversation, those of clients behind it too; return how many there were."""
        principal, *link = bound
        theirs = [
            asked
            for asked in self._asked.values()
            if is_of(asked.principal, principal) and [asked.session, asked.connection] == link
        ]
        for asked in theirs:
            self._forget(asked)
        return len(theirs)

    def spend_token(self, token: str, who: Principal, digest: str, now: float) -> ApprovalRequest:
        """Use up a token for exactly this request; return the approval. Raises ConfirmRequired for any difference."""
        self.expire(now)
        asked = self._by_token.get(_hash(token))
        if asked is None or not _is_for(asked, who, digest):
            self.count_wrong(who)
            raise ConfirmRequired(
                "The confirmation token is not valid for this request. A token is good once, for one caller, "
                "one connection and one exact request. Ask for a new one with confirm.issue."
            )
        if asked.state == "denied":
            self._forget(asked)
            raise Denied(asked)
        if asked.state == "waiting":
            raise ConfirmRequired(
                "A person has not approved this token yet. They can: computer-linker approvals.", approvalId=asked.id
            )
        self._wrong.pop(asked.bound, None)
        return self._used_up(asked)

    def of_token(self, token: str, who: Principal, digest: str, now: float) -> ApprovalRequest | None:
        """The request of a token; None when it is not good for exactly this request."""
        self.expire(now)
        asked = self._by_token.get(_hash(token))
        return asked if asked is not None and _is_for(asked, who, digest) else None

    def approved(self, who: Principal, digest: str, now: float) -> ApprovalRequest | None:
        """Return an unused approval of a request that was made without a token."""
        return self._without_token("approved", who, digest, now)

    def open_request(self, who: Principal, digest: str, now: float) -> ApprovalRequest | None:
        """Return a waiting request that was made without a token."""
        return self._without_token("waiting", who, digest, now)

    def spend_approval(self, who: Principal, digest: str, now: float) -> ApprovalRequest | None:
        """Use up an approval of exactly this request; None when there is none."""
        asked = self.approved(who, digest, now)
        return None if asked is None else self._used_up(asked)

    def spend_denial(self, who: Principal, digest: str, now: float) -> ApprovalRequest | None:
        """Use up a person's no to exactly this request that no call has brought back yet; None when there is none."""
        asked = self._without_token("denied", who, digest, now)
        if asked is not None:
            self._forget(asked)
        return asked

    def find(self, asked_id: str) -> ApprovalRequest | None:
        """The request of this id while it waits, or while its answer was not brought back yet."""
        return self._asked.get(asked_id)

    def waiting(self, now: float) -> list[ApprovalRequest]:
        """Return waiting requests, the oldest first."""
        self.expire(now)
        return [asked for asked in self._asked.values() if asked.state == "waiting"]

    def withdraw(self, asked: ApprovalRequest) -> None:
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

    def _count_no(self, asked: ApprovalRequest, now: float) -> None:
        """Count a no for the client; for its principal only the first few under each name, for one no may end many requests."""
        (client, enough), (principal, most) = _counted(asked).items()
        noes = self._noes.setdefault(client, deque(maxlen=enough))
        if len(noes) < enough:
            self._noes.setdefault(principal, deque(maxlen=most)).append(now)
        noes.append(now)

    def _refuse_when_quiet(self, asked: ApprovalRequest) -> None:
        """Refuse what the owner would only refuse once more: a caller must not wear them down."""
        for counted, most in _counted(asked).items():
            noes = self._noes.get(counted, deque[float]())
            if len(noes) < most or asked.asked_at - noes[0] > _NOES_WITHIN_S or asked.asked_at - noes[-1] > _QUIET_S:
                continue
            seconds = round(_QUIET_S - (asked.asked_at - noes[-1]))
            raise DeniedByPerson(
                f"The owner refused the last {most} requests, so {NOT_SHOWN}. Ask again in {seconds} seconds.",
                answer="no",
                retryAfterSeconds=seconds,
            )

    def _has_room_for(self, asked: ApprovalRequest) -> bool:
        """Whether one more fits. A principal may use a quarter of the room, a conversation a part of that; a few always fit."""
        mine = [old for old in self._asked.values() if account_of(old.principal) == account_of(asked.principal)]
        count, length = len(mine) + 1, sum(len(old.preview) for old in mine) + len(asked.preview)
        here = sum(old.bound == asked.bound for old in mine) + 1
        if here > _MAX_IN_CONVERSATION or count > _MAX_WAITING // 4 or (mine and length > _MAX_CHARACTERS // 4):
            return False
        if count <= _ALWAYS_WAITING and length <= _MAX_CHARACTERS // 16:
            return True
        everything = sum(len(old.preview) for old in self._asked.values()) + len(asked.preview)
        return len(self._asked) < _MAX_WAITING and everything <= _MAX_CHARACTERS

    def _used_up(self, asked: ApprovalRequest) -> ApprovalRequest:
        """Remove an approval: it is used once, whatever the result."""
        asked.state = "spent"
        self._forget(asked)
        return asked

    def _without_token(self, state: State, who: Principal, digest: str, now: float) -> ApprovalRequest | None:
        self.expire(now)
        fitting = (one for one in self._asked.values() if one.state == state and one.token_hash is None)
        return next((one for one in fitting if _is_for(one, who, digest)), None)

    def open(self, asked_id: str, now: float) -> ApprovalRequest | None:
        """The request of this id while it waits for an answer."""
        self.expire(now)
        asked = self._asked.get(asked_id)
        return asked if asked is not None and asked.state == "waiting" else None

    def _forget(self, asked: ApprovalRequest) -> None:
        self._asked.pop(asked.id, None)
        if asked.token_hash is not None:
            self._by_token.pop(asked.token_hash, None)
            if not any(other.bound == asked.bound for other in self._by_token.values()):
                self._wrong.pop(asked.bound, None)


def _counted(asked: ApprovalRequest) -> dict[tuple[str, str | None], int]:
    """Whose noes in a row count, and how many are enough: the client's by its name without the version, and its principal's."""
    name = (asked.client or "").partition("/")[0]
    account = account_of(asked.principal)
    return {(account, name): _NOES, (account, None): 2 * _NOES}


def _is_for(asked: ApprovalRequest, who: Principal, digest: str) -> bool:
    return asked.digest == digest and asked.bound == who.bound


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def answerer_name(who: Principal, way: Way) -> str:
    """Who answered. A client's dialog is answered by the client, even one that has the owner's credential."""
    return client_label(who.client) if way == "dialog" and who.client else who.id
