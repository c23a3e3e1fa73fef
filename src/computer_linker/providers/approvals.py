"""Who says yes: puts a request before the people who can be asked, and waits for one of them until the deadline."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import anyio
from anyio import to_thread

from computer_linker.errors import ConfirmRequired
from computer_linker.model.envelope import Call, with_its_token
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal
from computer_linker.model.rights import Rights
from computer_linker.model.scope import Scope
from computer_linker.policy.confirm import About, Asked, Ledger, counts_as_a_yes
from computer_linker.policy.digest import canonical_request, digest_of
from computer_linker.policy.preview import escaped, preview

Answer = Literal["yes", "yes_for_session", "no"]
Approver = Callable[[Asked], Awaitable[Answer | None]]
"""Puts a request before a person and returns their answer; None when this way brought none."""

FindApprover = Callable[[Asked], Awaitable[Approver | None]]
"""Looks whether a way to ask is there for this request; None when it is not."""

Look = Callable[[], Awaitable[About | None]]
"""Looks at what the request would change, as it is now."""

WAIT_S = 60.0
_PICTURE_S = 3.0
_LONG = 100_000
"""Bytes whose text is made in a worker thread."""


class NeedsInput(Exception):
    """The question goes back to the client as this call's result; the call comes again with the answer."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.id)
        self.asked = asked


@dataclass(slots=True)
class _Waiting:
    """The calls that wait for one answer."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    calls: int = 0


async def _nothing_to_see() -> About | None:
    return None


class Approvals:
    """The ledger, the people who can be asked now, and the calls that wait for them."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._approvers: dict[str, Approver] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._changed = anyio.Event()
        self._offers: list[FindApprover] = []

    @classmethod
    def open(cls, services: object) -> Self:
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
        self, call: Call, op: Rights, scope: Scope, who: Principal, ask: Approver | None, look: Look = _nothing_to_see
    ) -> Asked | None:
        """Use up a person's yes to exactly this call, asking for it where there is none yet.

        What they were shown is held to right before the effect (`check_unchanged`), not here: a call may still wait its turn.
        None where they allowed everything in this scope for this session. Raises ConfirmRequired without a yes.
        """
        call = with_its_token(call)
        fresh, canonical = _asked(call, op, who, WAIT_S)
        if call.confirm is not None:
            return await self._confirm_by_token(call.confirm, who, fresh.digest)
        if self.ledger.has_standing(who, scope.id):
            return None
        yes = self.ledger.spend_approval(who, fresh.digest, time.monotonic())
        if yes is not None:
            return yes
        asked = self._put_before_a_person(await _shown_as(fresh, canonical, await look()), who)
        was_shown, asked.is_dialog_over = asked.is_dialog_over, False
        dialog = [] if ask is None or was_shown or who.is_remote else [_dialog(ask, who)]
        asked.is_in_dialog = bool(dialog)
        approvers = [*dialog, *await self._there_for(asked)]
        if not approvers:
            raise _no_yes(asked, was_shown=was_shown)
        await self._wait(asked, approvers)
        return asked

    def answer(self, asked_id: str, answer: Answer) -> Asked | None:
        """Take a person's answer, from whichever way it came first."""
        now = time.monotonic()
        if answer == "no":
            asked = self.ledger.deny(asked_id, now)
        else:
            asked = self.ledger.approve(asked_id, now, for_session=answer == "yes_for_session")
        if asked is not None:
            if asked_id in self._waiting:
                self._waiting[asked_id].answered.set()
            self._announce()
        return asked

    async def end_of(self, principal: str) -> int:
        """Forget what a caller asked for and was allowed; it is nothing that runs."""
        self.ledger.forget_principal(principal)
        self._announce()
        return 0

    def waiting(self) -> list[Asked]:
        """What waits for a person now."""
        return self.ledger.waiting(time.monotonic())

    async def changed(self) -> None:
        """Return at the next change of what is waiting."""
        await self._changed.wait()

    @asynccontextmanager
    async def attached(self, name: str, approver: Approver) -> AsyncIterator[None]:
        """While the body runs, calls wait for this approver too."""
        self._approvers[name] = approver
        try:
            yield
        finally:
            del self._approvers[name]

    def offer(self, find: "FindApprover") -> None:
        """Another way to ask, looked for only when there is something to ask."""
        self._offers.append(find)

    def take_response(self, asked_id: str, who: Principal, answer: Answer | None) -> None:
        """The answer that a repeated call brought. It counts only from the caller and connection that was asked.

        A dialog that was closed or declined is no answer: others may still be asked, and the question stays open.
        """
        asked = self.ledger.find(asked_id)
        if asked is None or asked.bound != who.bound or not asked.is_in_dialog:
            raise ConfirmRequired("That question is no longer open. Send the request again without requestState.")
        if answer is None or (answer != "no" and not counts_as_a_yes(who, asked)):
            asked.is_dialog_over = True
            return
        self.answer(asked_id, answer)
        if answer == "no":
            # A no ends this call too; to run it would only put the same question again.
            self.ledger.withdraw(asked)
            raise _said_no(asked)

    async def _confirm_by_token(self, token: str, who: Principal, digest: str) -> Asked:
        asked = self.ledger.of_token(token, who, digest, time.monotonic())
        if asked is not None and asked.state == "waiting" and (approvers := await self._there_for(asked)):
            # The person who is there gets the time to answer about a token that waits for them.
            await self._ask_all(asked, approvers)
        return self.ledger.spend_token(token, who, digest, time.monotonic())

    def _put_before_a_person(self, fresh: Asked, who: Principal) -> Asked:
        """The question, under the id it already has when the same one is open and no call waits for its answer."""
        now = time.monotonic()
        asked = self.ledger.open_question(who, fresh.digest, now)
        if asked is not None and asked.id not in self._waiting:
            if _holds(asked) == _holds(fresh):
                asked.expires_at = now + WAIT_S
                return asked
            # It would show something else by now: whoever looks at the old question must not answer the new one.
            self.ledger.withdraw(asked)
        self.ledger.ask(fresh)
        self._announce()
        return fresh

    async def _there_for(self, asked: Asked) -> list[Approver]:
        """Every way to ask about this request that is there now."""
        found = [await find(asked) for find in self._offers]
        return [*self._approvers.values(), *(approver for approver in found if approver is not None)]

    async def _wait(self, asked: Asked, approvers: list[Approver]) -> None:
        """Return at a yes. A question that no way brought an answer to stays open: a person may still find it in the list."""
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
                raise _said_no(asked)
            case "waiting" if question is not None:
                raise question
            case _:
                raise _no_yes(asked, was_shown=True)

    async def _ask_all(self, asked: Asked, approvers: list[Approver]) -> NeedsInput | None:
        """Ask by every way at once until one brings an answer, all came back without one, or the time is over."""
        waiting = self._waiting.setdefault(asked.id, _Waiting())
        waiting.calls += 1
        left, question = len(approvers), None

        async def put(approver: Approver) -> None:
            nonlocal left, question
            try:
                answer = await approver(asked)
            except NeedsInput as needed:
                question = needed
                group.cancel_scope.cancel()
                return
            left -= 1
            if answer is not None:
                self.answer(asked.id, answer)
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


def _dialog(ask: Approver, who: Principal) -> Approver:
    """The client's own dialog, which may always refuse, and allows only what `counts_as_a_yes`."""

    async def put(asked: Asked) -> Answer | None:
        answer = await ask(asked)
        return answer if answer in (None, "no") or counts_as_a_yes(who, asked) else None

    return put


def shown(asked: Asked) -> dict[str, Any]:
    """A waiting request as every view of it says it; never the token."""
    return {
        "id": asked.id,
        "op": asked.op,
        "scope": asked.scope,
        "digest": asked.digest,
        "preview": asked.preview,
        "details": [] if asked.about is None else list(asked.about.lines),
        "principal": escaped(asked.principal),
        "client": asked.client,
        "secondsLeft": seconds_left(asked),
    }


def seconds_left(asked: Asked) -> int:
    """How long a person still has to answer."""
    return max(0, round(asked.expires_at - time.monotonic()))


def _asked(call: Call, op: Rights, who: Principal, ttl_s: float) -> tuple[Asked, bytes]:
    """The question about a request, its text still to be made, and the request's canonical bytes."""
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
    """The question with the whole request as text, and what the person is shown beside it."""
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


def _said_no(asked: Asked) -> ConfirmRequired:
    return ConfirmRequired(f"A person said no to {asked.op}.", approvalId=asked.id, answer="no")


def _no_yes(asked: Asked, *, was_shown: bool) -> ConfirmRequired:
    """Nobody said yes; while the question is open, with how a person still can."""
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
