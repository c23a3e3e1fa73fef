"""Asks approvers about a request, and waits for an answer until the deadline."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self

import anyio
from anyio import to_thread

from computer_linker.audit.faults import AuditUnavailable
from computer_linker.errors import ConfirmRequired
from computer_linker.model.envelope import Call, with_its_token
from computer_linker.model.event import Approval, Way
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal
from computer_linker.model.rights import Rights
from computer_linker.model.scope import Scope
from computer_linker.policy.confirm import About, Asked, Denied, Ledger, can_stand, counts_as_a_yes
from computer_linker.policy.digest import canonical_request, digest_of
from computer_linker.policy.preview import escaped, preview
from computer_linker.services import Services

Answer = Literal["yes", "yes_for_session", "no"]
Approver = Callable[[Asked], Awaitable[Answer | None]]
"""Shows a request to a person and returns their answer; None when this channel brought none."""

FindApprover = Callable[[Asked], Awaitable[Approver | None]]
"""Returns the approver of a channel for this request; None when the channel is not available."""

Describe = Callable[[], Awaitable[About | None]]
"""Returns what the request would change, as it is now."""


class Answerer(NamedTuple):
    """Who answers, and over which channel."""

    who: Principal
    way: Way


class Yes(NamedTuple):
    """An approval: a person's answer, and the request they saw; None for one that covers the whole session."""

    approval: Approval | None
    asked: Asked | None


Record = Callable[[Asked, Answer, Answerer], Awaitable[str]]
"""Records an answer in the history and returns its event's id."""

PERSON = Principal("person", "approver", "desktop", "desktop")
"""The person at this computer, when not further identified."""
WAIT_S = 60.0
_PICTURE_S = 3.0
_LONG = 100_000
"""Requests from this many bytes on are rendered in a worker thread."""


class NeedsInput(Exception):
    """Returns the question to the client as this call's result; the client repeats the call with the answer."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.id)
        self.asked = asked


@dataclass(slots=True)
class _Waiting:
    """Calls that wait for one answer."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    calls: int = 0


class _Channel(NamedTuple):
    """An approver, and who answers through it."""

    approver: Approver
    by: Answerer


async def _no_about() -> About | None:
    return None


class Approvals:
    """The ledger, the attached approvers, and the calls that wait for them."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._approvers: dict[str, _Channel] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._changed = anyio.Event()
        self._offers: list[FindApprover] = []
        self.record: Record = _unrecorded
        """Records an answer in the history; set by the service."""

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls()

    async def issue(
        self, call: Call, op: Rights, who: Principal, ttl_s: float, about: About | None = None
    ) -> tuple[str, Asked]:
        """A token for exactly this call, and the request that now waits for a person."""
        asked, canonical = _asked(call, op, who, ttl_s)
        asked = await _shown_as(asked, canonical, about)
        token = self.ledger.issue_token(asked)
        self._announce()
        return token, asked

    async def confirm(
        self, call: Call, op: Rights, scope: Scope, who: Principal, ask: Approver | None, describe: Describe = _no_about
    ) -> Yes:
        """Use up a person's yes to exactly this call, asking for it where there is none yet.

        What they were shown is compared right before the effect (`check_unchanged`), not here: the call may still be queued.
        Raises ConfirmRequired without a yes.
        """
        call = with_its_token(call)
        fresh, canonical = _asked(call, op, who, WAIT_S)
        if call.confirm is not None:
            return _yes_of(await self._confirm_by_token(call.confirm, who, fresh.digest))
        if self.ledger.has_standing(who, scope.id):
            return Yes(self.ledger.standing(who, scope.id), None)
        yes = self.ledger.spend_approval(who, fresh.digest, time.monotonic())
        if yes is not None:
            return _yes_of(yes)
        no = self.ledger.spend_denial(who, fresh.digest, time.monotonic())
        if no is not None:
            raise Denied(no)
        asked = self._open_question(await _shown_as(fresh, canonical, await describe()), who)
        was_shown, asked.is_dialog_over = asked.is_dialog_over, False
        dialog = (
            [] if ask is None or was_shown or who.is_remote else [_Channel(_dialog(ask, who), Answerer(who, "dialog"))]
        )
        asked.is_in_dialog = bool(dialog)
        approvers = [*dialog, *await self._channels_for(asked)]
        if not approvers:
            raise _no_yes(asked, was_shown=was_shown)
        await self._wait(asked, approvers)
        return _yes_of(asked)

    async def take(self, asked_id: str, answer: Answer, by: Answerer) -> Asked | None:
        """Record a person's answer, then apply it; None when nothing waits under this id any more."""
        asked = self.ledger.open(asked_id, time.monotonic())
        return None if asked is None else self.answer(asked_id, answer, by, await self.record(asked, answer, by))

    def answer(
        self, asked_id: str, answer: Answer, by: Answerer = Answerer(PERSON, "terminal"), event: str = ""
    ) -> Asked | None:
        """Apply a person's answer that is in the history as `event`; only the first one counts."""
        now = time.monotonic()
        asked = self.ledger.open(asked_id, now)
        if asked is None:
            return None
        if answer == "no":
            self.ledger.deny(asked_id, now, Approval("no", by.who.id, by.way, event))
        else:
            given = Approval("yes", by.who.id, by.way, event, extent_of(asked, answer))
            self.ledger.approve(asked_id, now, for_session=answer == "yes_for_session", by=given)
        if asked_id in self._waiting:
            self._waiting[asked_id].answered.set()
        self._announce()
        return asked

    async def end_of(self, principal: str | None) -> int:
        """Drop a caller's questions and approvals."""
        if principal is not None:
            self.ledger.forget_principal(principal)
        self._announce()
        return 0

    def waiting(self) -> list[Asked]:
        """The open questions."""
        return self.ledger.waiting(time.monotonic())

    async def changed(self) -> None:
        """Return at the next change of the open questions."""
        await self._changed.wait()

    @asynccontextmanager
    async def attached(self, name: str, approver: Approver, way: Way = "terminal") -> AsyncIterator[None]:
        """Attach an approver while the body runs."""
        self._approvers[name] = _Channel(approver, Answerer(PERSON, way))
        try:
            yield
        finally:
            del self._approvers[name]

    def offer(self, find: "FindApprover") -> None:
        """Add a channel that is looked up only when there is a question."""
        self._offers.append(find)

    async def take_response(self, asked_id: str, who: Principal, answer: Answer | None) -> None:
        """Take the answer of a repeated call. It counts only from the caller and connection that was asked.

        A dialog that was closed or declined is no answer: others may still be asked, and the question stays open.
        """
        asked = self.ledger.find(asked_id)
        if asked is None or asked.bound != who.bound or not asked.is_in_dialog:
            raise ConfirmRequired("That question is no longer open. Send the request again without requestState.")
        if answer is None or (answer != "no" and not counts_as_a_yes(who, asked)):
            asked.is_dialog_over = True
            return
        await self.take(asked_id, answer, Answerer(who, "dialog"))
        if answer == "no":
            # A no ends this call too; to run it would only put the same question again.
            self.ledger.withdraw(asked)
            raise Denied(asked)

    async def _confirm_by_token(self, token: str, who: Principal, digest: str) -> Asked:
        asked = self.ledger.of_token(token, who, digest, time.monotonic())
        if asked is not None and asked.state == "waiting" and (approvers := await self._channels_for(asked)):
            # The person who is there gets the time to answer about a token that waits for them.
            await self._ask_all(asked, approvers)
            _refuse_if_over(asked)
        return self.ledger.spend_token(token, who, digest, time.monotonic())

    def _open_question(self, fresh: Asked, who: Principal) -> Asked:
        """Open the question, reusing the id of an identical open one that no call waits for."""
        now = time.monotonic()
        asked = self.ledger.open_question(who, fresh.digest, now)
        if asked is not None and asked.id not in self._waiting:
            if _holds(asked) == _holds(fresh):
                asked.expires_at = now + WAIT_S
                return asked
            # It would show something else by now: an answer to the old question must not count for the new one.
            self.ledger.withdraw(asked)
        self.ledger.ask(fresh)
        self._announce()
        return fresh

    async def _channels_for(self, asked: Asked) -> list["_Channel"]:
        """Every available approver for this request."""
        found = [await find(asked) for find in self._offers]
        notices = [_Channel(approver, Answerer(PERSON, "notification")) for approver in found if approver is not None]
        return [*self._approvers.values(), *notices]

    async def _wait(self, asked: Asked, approvers: list["_Channel"]) -> None:
        """Return at a yes. An unanswered question stays open: a person may still find it in the list."""
        is_over = False
        try:
            question = await self._ask_all(asked, approvers)
            is_over = True
        finally:
            if not is_over or asked.state != "waiting":
                self.ledger.withdraw(asked)
            self._announce()
        match asked.state:
            case "approved":
                asked.state = "spent"
            case "denied":
                raise Denied(asked)
            case "waiting" if question is not None:
                raise question
            case _:
                raise _no_yes(asked, was_shown=asked.is_in_dialog)

    async def _ask_all(self, asked: Asked, approvers: list["_Channel"]) -> NeedsInput | None:
        """Ask all approvers at once until one answers, all return without an answer, or the time is over."""
        waiting = self._waiting.setdefault(asked.id, _Waiting())
        waiting.calls += 1
        left, question = len(approvers), None

        async def put(channel: "_Channel") -> None:
            nonlocal left, question
            try:
                answer = await channel.approver(asked)
            except NeedsInput as needed:
                question = needed
                group.cancel_scope.cancel()
                return
            left -= 1
            if answer is not None:
                # One that cannot be recorded does not count.
                with suppress(AuditUnavailable):
                    await self.take(asked.id, answer, channel.by)
            if not left:
                group.cancel_scope.cancel()

        try:
            with anyio.move_on_after(asked.expires_at - time.monotonic()):
                async with anyio.create_task_group() as group:
                    for approver in approvers:
                        group.start_soon(put, approver)
                    await waiting.answered.wait()
                    group.cancel_scope.cancel()
        finally:
            waiting.calls -= 1
            if not waiting.calls:
                del self._waiting[asked.id]
        self.ledger.expire(time.monotonic())
        return question

    def _announce(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def extent_of(asked: Asked, answer: Answer) -> Literal["once", "session"]:
    """What a yes allows: this request, or all of the caller's session in this scope."""
    return "session" if answer == "yes_for_session" and can_stand(asked) else "once"


def facts_of(asked: Asked, answer: Answer, way: Way) -> dict[str, str]:
    """The facts in an answer's event: its channel, and the request it is about."""
    request = {"asked": asked.id, "operation": asked.op, "inScope": asked.scope, "digest": asked.digest}
    return {"way": way, **request, **({} if answer == "no" else {"extent": extent_of(asked, answer)})}


def _refuse_if_over(asked: Asked) -> None:
    """Raise for a question that was denied or not answered in time."""
    if asked.state == "denied":
        raise Denied(asked)
    if asked.state == "expired":
        raise _no_yes(asked, was_shown=True)


def _yes_of(asked: Asked) -> Yes:
    return Yes(asked.answered, asked)


async def _unrecorded(_asked: Asked, _answer: Answer, _by: Answerer) -> str:
    return ""


def _dialog(ask: Approver, who: Principal) -> Approver:
    """The client's own dialog, which may always refuse, and allows only what `counts_as_a_yes`."""

    async def put(asked: Asked) -> Answer | None:
        answer = await ask(asked)
        return answer if answer in (None, "no") or counts_as_a_yes(who, asked) else None

    return put


def seconds_left(asked: Asked) -> int:
    """How long a person still has to answer."""
    return max(0, round(asked.expires_at - time.monotonic()))


def _asked(call: Call, op: Rights, who: Principal, ttl_s: float) -> tuple[Asked, bytes]:
    """The question about a request, its text not yet rendered, and the request's canonical bytes."""
    canonical = canonical_request(call.scope, op.name, call.target, call.input, call.options)
    digest, now = digest_of(canonical), time.monotonic()
    principal, session, connection = who.bound
    asked = Asked(
        id=new_handle("ask"),
        op=op.name,
        scope=call.scope,
        digest=digest,
        preview="",
        principal=principal,
        session=session,
        connection=connection,
        # A client names itself: its name must not be able to paint over what a person is shown.
        client=None if who.client is None else escaped(who.client),
        asked_at=now,
        expires_at=now + ttl_s,
    )
    return asked, canonical


async def _shown_as(asked: Asked, canonical: bytes, about: About | None) -> Asked:
    """The question with the whole request as text, and its preview."""
    is_long = len(canonical) > _LONG
    asked.preview = (
        await to_thread.run_sync(preview, canonical, asked.digest) if is_long else preview(canonical, asked.digest)
    )
    asked.about = about
    if about is not None and about.photograph is not None:
        with anyio.move_on_after(_PICTURE_S):
            asked.picture = await about.photograph()
    return asked


def _holds(asked: Asked) -> Mapping[str, str]:
    return {} if asked.about is None else asked.about.holds


def _no_yes(asked: Asked, *, was_shown: bool) -> ConfirmRequired:
    """The refusal of a call without a yes; while the question is open, with how a person can still answer."""
    if asked.state != "waiting":
        return ConfirmRequired(f"Nobody answered the question about {asked.op}.", approvalId=asked.id, answer="none")
    why = (
        "it was put to the client, whose dialog was closed without a yes (a client that nobody watches does that by itself)"
        if was_shown
        else "nobody is there to be asked"
    )
    return ConfirmRequired(
        f"{asked.op} needs a person's yes, and {why}. A person can allow it with `computer-linker approvals`; then send "
        f"the same request again within {WAIT_S:g} seconds.",
        approvalId=asked.id,
        digest=asked.digest,
        answer="none",
        approveWith=f"computer-linker approvals allow {asked.id}",
    )
