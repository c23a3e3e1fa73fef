"""Who says yes: puts a request before the people who can be asked, and waits for one of them until the deadline."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, Self

import anyio

from computer_linker.errors import ConfirmRequired
from computer_linker.model.envelope import Call, with_its_token
from computer_linker.model.ids import new_handle
from computer_linker.model.principal import Principal
from computer_linker.model.rights import Rights
from computer_linker.model.scope import Scope
from computer_linker.policy.confirm import Asked, Ledger
from computer_linker.policy.digest import canonical_request, digest_of
from computer_linker.policy.preview import preview

Answer = Literal["yes", "yes_for_session", "no"]
Approver = Callable[[Asked], Awaitable[Answer | None]]
"""Puts a request before a person and returns their answer; None when this way cannot ask after all."""

FindApprover = Callable[[Asked], Awaitable[Approver | None]]
"""Looks whether a way to ask is there for this request; None when it is not."""

WAIT_S = 60.0


class NeedsInput(Exception):
    """The question goes back to the client as this call's result; the call comes again with the answer."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.id)
        self.asked = asked


class Approvals:
    """The ledger, the people who can be asked now, and the calls that wait for them."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._approvers: dict[str, Approver] = {}
        self._answered: dict[str, anyio.Event] = {}
        self._changed = anyio.Event()
        self._offers: list[FindApprover] = []

    @classmethod
    def open(cls, services: object) -> Self:
        return cls()

    def make_asked(self, call: Call, op: Rights, who: Principal, ttl_s: float) -> Asked:
        """The request as it is put before a person."""
        canonical = canonical_request(call.scope, op.name, call.target, call.input, call.options)
        digest, now = digest_of(canonical), time.monotonic()
        return Asked(
            id=new_handle("ask"),
            op=op.name,
            scope=call.scope,
            digest=digest,
            preview=preview(canonical, digest),
            principal=who.id,
            session=who.session,
            connection=who.connection,
            client=who.client,
            asked_at=now,
            expires_at=now + ttl_s,
        )

    def issue(self, call: Call, op: Rights, who: Principal, ttl_s: float) -> tuple[str, Asked]:
        """A token for exactly this call, and the request that now waits for a person."""
        asked = self.make_asked(call, op, who, ttl_s)
        token = self.ledger.issue_token(asked)
        self._announce()
        return token, asked

    async def confirm(self, call: Call, op: Rights, scope: Scope, who: Principal, ask: Approver | None) -> None:
        """Return when a person has said yes to exactly this call. Raises ConfirmRequired otherwise."""
        call = with_its_token(call)
        asked = self.make_asked(call, op, who, WAIT_S)
        now = time.monotonic()
        if call.confirm is not None:
            await self._until_answered(call.confirm, who, asked.digest)
            self.ledger.spend_token(call.confirm, who, asked.digest, time.monotonic())
            return
        if self.ledger.has_standing(who, scope.id) or self.ledger.spend_approval(who, asked.digest, now):
            return
        self.ledger.ask(asked)
        self._announce()
        approvers = [*([ask] if ask is not None else []), *await self._there_for(asked)]
        if not approvers:
            raise _nobody(asked, op)
        await self._wait(asked, approvers)

    def answer(self, asked_id: str, answer: Answer) -> Asked | None:
        """Take a person's answer, from whichever way it came first."""
        now = time.monotonic()
        if answer == "no":
            asked = self.ledger.deny(asked_id, now)
        else:
            asked = self.ledger.approve(asked_id, now, for_session=answer == "yes_for_session")
        if asked is not None:
            event = self._answered.get(asked_id)
            if event is not None:
                event.set()
            self._announce()
        return asked

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
        """The answer that a repeated call brought. It counts only from the caller and connection that was asked."""
        asked = self.ledger.find(asked_id)
        if asked is None or asked.principal != who.id or asked.connection != who.connection:
            raise ConfirmRequired("That question is no longer open. Send the request again without requestState.")
        self.answer(asked_id, answer or "no")
        if answer is None or answer == "no":
            # A no ends this call too; to run it would only put the same question again.
            raise _not_allowed(asked)

    async def _until_answered(self, token: str, who: Principal, digest: str) -> None:
        """Give the person who is there the time to answer about a token that waits for them."""
        asked = self.ledger.waiting_token(token, who, digest, time.monotonic())
        approvers = [] if asked is None else await self._there_for(asked)
        if asked is None or not approvers:
            return
        answered = self._answered.setdefault(asked.id, anyio.Event())
        left = len(approvers)

        async def put(approver: Approver, asked: Asked) -> None:
            nonlocal left
            answer = await approver(asked)
            left -= 1
            if answer is not None:
                self.answer(asked.id, answer)
            if not left:
                answered.set()

        try:
            with anyio.move_on_after(asked.expires_at - time.monotonic()):
                async with anyio.create_task_group() as group:
                    for approver in approvers:
                        group.start_soon(put, approver, asked)
                    await answered.wait()
                    group.cancel_scope.cancel()
        finally:
            self._answered.pop(asked.id, None)

    async def _there_for(self, asked: Asked) -> list[Approver]:
        """Every way to ask about this request that is there now."""
        found = [await find(asked) for find in self._offers]
        return [*self._approvers.values(), *(approver for approver in found if approver is not None)]

    async def _wait(self, asked: Asked, approvers: list[Approver]) -> None:
        waiting = self._answered[asked.id] = anyio.Event()
        left = len(approvers)
        question: NeedsInput | None = None

        async def put(approver: Approver) -> None:
            nonlocal left, question
            try:
                answer = await approver(asked)
            except NeedsInput as needed:
                question = needed
                waiting.set()
                return
            left -= 1
            if answer is not None:
                self.answer(asked.id, answer)
            if not left:
                waiting.set()

        try:
            with anyio.move_on_after(asked.expires_at - time.monotonic()):
                async with anyio.create_task_group() as group:
                    for approver in approvers:
                        group.start_soon(put, approver)
                    await waiting.wait()
                    group.cancel_scope.cancel()
        finally:
            del self._answered[asked.id]
            state = asked.state
            if question is None or state != "waiting":
                self.ledger.withdraw(asked)
            self._announce()
        if state == "approved":
            return
        if question is not None and state == "waiting":
            raise question
        raise _not_allowed(asked)

    def _announce(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def shown(asked: Asked) -> dict[str, Any]:
    """A waiting request as every view of it says it; never the token."""
    return {
        "id": asked.id,
        "op": asked.op,
        "scope": asked.scope,
        "digest": asked.digest,
        "preview": asked.preview,
        "principal": asked.principal,
        "client": asked.client,
        "secondsLeft": seconds_left(asked),
    }


def seconds_left(asked: Asked) -> int:
    """How long a person still has to answer."""
    return max(0, round(asked.expires_at - time.monotonic()))


def _not_allowed(asked: Asked) -> ConfirmRequired:
    said_no = asked.state == "denied"
    message = f"A person said no to {asked.op}." if said_no else f"Nobody answered the question about {asked.op}."
    return ConfirmRequired(message, approvalId=asked.id, answer="no" if said_no else "none")


def _nobody(asked: Asked, op: Rights) -> ConfirmRequired:
    return ConfirmRequired(
        f"{op.name} needs a person's yes, and nobody is there to be asked. A person can allow it with "
        f"`computer-linker approvals`; then send the same request again within {WAIT_S:g} seconds.",
        approvalId=asked.id,
        digest=asked.digest,
        approveWith=f"computer-linker approvals allow {asked.id}",
    )
