"""Asks the owner about a request over every channel, and waits for an answer until the deadline."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import anyio

from computer_linker.approvals.answers import Answerer as Answerer
from computer_linker.approvals.answers import Yes as Yes
from computer_linker.approvals.ledger import Ledger, answerer_name
from computer_linker.approvals.new_request import new_request, show, take_picture
from computer_linker.approvals.request import (
    WAIT_S,
    Answer,
    ApprovalRequest,
    Denied,
    NeedsInput,
    Preview,
    left_unanswered,
    no_answer,
    possible,
    still_needs_a_yes,
)
from computer_linker.approvals.standing import MINUTES, check_extent, standing_of
from computer_linker.approvals.store import ApprovalStore
from computer_linker.audit.faults import AuditUnavailable
from computer_linker.errors import ConfigInvalid, ConfirmRequired
from computer_linker.model.envelope import Call, with_its_token
from computer_linker.model.event import Approval, Way
from computer_linker.model.principal import Principal, is_of
from computer_linker.model.scope import Rights, Scope
from computer_linker.services import Services
from computer_linker.vault.vault import Vault

Approver = Callable[[ApprovalRequest], Awaitable[Answer | None]]
"""Shows a request to a person and returns their answer; None when this channel brought none."""

FindApprover = Callable[[ApprovalRequest], Awaitable[Approver | None]]
"""Returns the approver of a channel for this request; None when the channel is not available."""

Describe = Callable[[], Awaitable[Preview | None]]
"""Returns what the request would change, as it is now."""

Record = Callable[[ApprovalRequest, Answer, Answerer], Awaitable[str]]
"""Records an answer in the history and returns its event's id."""

log = logging.getLogger(__name__)
PERSON = Principal("person", "approver", "desktop", "desktop")
"""The person at this computer, when not further identified."""


@dataclass(slots=True)
class _Waiting:
    """Calls that wait for one answer."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    calls: int = 0


class _Channel(NamedTuple):
    """An approver, and who answers through it."""

    approver: Approver
    by: Answerer


async def _no_about() -> Preview | None:
    return None


class Approvals:
    """The ledger, the standing approvals, the attached approvers, and the calls that wait for them."""

    def __init__(self, store: ApprovalStore, vault: Vault | None = None) -> None:
        """The secrets of `vault` are masked in whatever is shown of a request, to anyone."""
        self.ledger, self.store, self._vault = Ledger(), store, vault
        self._approvers: dict[str, _Channel] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._changed = anyio.Event()
        self._offers: list[tuple[FindApprover, Way]] = []
        self.record: Record = _unrecorded
        """Records an answer in the history; set by the service."""

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(ApprovalStore(services.home), services.use(Vault))

    async def issue(
        self, call: Call, op: Rights, scope: Scope, who: Principal, ttl_s: float, about: Preview | None = None
    ) -> tuple[str, ApprovalRequest]:
        """A token for exactly this call, and the request that now waits for a person."""
        asked, canonical = new_request(call, op, scope, who, ttl_s)
        asked = await show(asked, call, canonical, possible(about), self._vault)
        await take_picture(asked)
        token = self.ledger.issue_token(asked)
        self._announce()
        return token, asked

    async def confirm(
        self, call: Call, op: Rights, scope: Scope, who: Principal, ask: Approver | None, describe: Describe = _no_about
    ) -> Yes:
        """Use up a person's yes to exactly this call, asking for it where there is none yet.

        What they were shown is compared right before the effect (`check_unchanged`), not here: the call may still be queued.
        Raises ConfirmRequired without a yes; what would be refused with a yes too is refused before a person is asked.
        """
        call = with_its_token(call)
        fresh, canonical = new_request(call, op, scope, who, WAIT_S)
        if call.confirm is not None:
            return _yes_of(await self._confirm_by_token(call.confirm, who, fresh.digest))
        if (yes := self._answered(who, fresh.digest)) is not None:
            return yes
        fresh = await show(fresh, call, canonical, possible(await describe()), self._vault)
        standing = self.store.covering(fresh)
        if standing is not None:
            return Yes(standing.approval, fresh, standing.id)
        await take_picture(fresh)
        # An earlier request for the same may have been answered while this one was prepared.
        if (yes := self._answered(who, fresh.digest)) is not None:
            return yes
        asked = self._open_request(fresh, who)
        was_shown, asked.is_dialog_over = asked.is_dialog_over, False
        asked.may_allow_in_dialog = self.may_allow_in_dialog(who, asked)
        dialog = [] if ask is None or was_shown or who.is_remote else [_dialog(ask, who)]
        asked.is_in_dialog = bool(dialog)
        approvers = [*dialog, *await self._channels_for(asked)]
        if not approvers:
            raise still_needs_a_yes(asked, was_shown=was_shown)
        await self._wait(asked, approvers)
        return _yes_of(asked)

    def _answered(self, who: Principal, digest: str) -> Yes | None:
        """Use up an answer to exactly this request that no call has brought back yet. Raises Denied at a no."""
        yes = self.ledger.spend_approval(who, digest, time.monotonic())
        if yes is not None:
            return _yes_of(yes)
        no = self.ledger.spend_denial(who, digest, time.monotonic())
        if no is not None:
            raise Denied(no)
        return None

    def may_allow_in_dialog(self, who: Principal, asked: ApprovalRequest) -> bool:
        """Whether a yes that the client itself reports counts as the owner's. The only place that decides it.

        Only where the owner allowed this client by name, at this machine, and for what a dialog shows whole; never for the
        superuser. The desktop bridge's phrase reaches this only where the owner set `allowPhrase`.
        """
        is_allowed = self.store.allows_client(who) or (who.proof == "bridge" and not who.is_remote)
        is_once = asked.about is not None and asked.about.is_once
        return is_allowed and not is_once and asked.fits_a_dialog

    def has_standing(self, call: Call, who: Principal) -> bool:
        """Whether a standing yes may cover such a call; `confirm` decides it by what the call is for."""
        wanted = (who.id, call.op, call.scope)
        return any((one.principal, one.op, one.scope) == wanted for one in self.store.standing)

    async def take(
        self, asked_id: str, answer: Answer, by: Answerer, minutes: int | None = MINUTES
    ) -> ApprovalRequest | None:
        """Record a person's answer, then apply it; None when nothing waits under this id any more."""
        asked = self.ledger.open(asked_id, time.monotonic())
        if asked is None:
            return None
        check_extent(asked, answer)
        if answer in ("same", "shape"):
            self.store.refuse_full()
        taken = self.answer(asked_id, answer, by, await self.record(asked, answer, by), minutes)
        if taken is None:
            log.warning("the answer to %s came too late: it was over while the answer was recorded", asked_id)
        if answer in ("same", "shape"):
            await self.save()
        return taken

    async def save(self) -> None:
        """Write what stands. One that cannot be written does not stand."""
        try:
            await self.store.save()
        except ConfigInvalid as error:
            log.error("the standing approvals cannot be kept, so none is in force: %s", error.message)
            self.store.keep_only(standing=lambda one: False)

    def answer(
        self,
        asked_id: str,
        answer: Answer,
        by: Answerer = Answerer(PERSON, "terminal"),
        event: str = "",
        minutes: int | None = MINUTES,
    ) -> ApprovalRequest | None:
        """Apply a person's answer that is in the history as `event`; only the first one counts.

        One that stands is in force from now on; `store.save` makes it survive the service. Raises InvalidRequest for an
        extent that this request cannot get.
        """
        now = time.monotonic()
        asked = self.ledger.open(asked_id, now)
        if asked is None:
            return None
        check_extent(asked, answer)
        answered = [asked]
        if answer == "no":
            self.ledger.deny(asked_id, now, Approval("no", answerer_name(by.who, by.way), by.way, event))
        else:
            given = Approval("yes", answerer_name(by.who, by.way), by.way, event, "once" if answer == "yes" else answer)
            if answer != "yes":
                standing = standing_of(asked, answer, minutes, given)
                self.store.add(standing)
                # What it covers and waits already need not be asked about any more.
                answered += [one for one in self.ledger.waiting(now) if one is not asked and standing.covers(one)]
            for one in answered:
                self.ledger.approve(one.id, now, given)
        for one in answered:
            if one.id in self._waiting:
                self._waiting[one.id].answered.set()
        self._announce()
        return asked

    async def end_of(self, principal: str | None) -> int:
        """Drop a caller's requests and approvals, those that stand too."""
        if principal is not None:
            self.drop_of(principal)
            if self.store.keep_only(standing=lambda one: not is_of(one.principal, principal)):
                await self.save()
        self._announce()
        return 0

    def drop_of(self, principal: str) -> None:
        """Drop what a principal asked for, and end the calls that wait for it: its credential is another one by now."""
        self.ledger.forget_principal(principal)
        for waiting in [one for asked, one in self._waiting.items() if self.ledger.find(asked) is None]:
            waiting.answered.set()
        self._announce()

    def left(self, who: Principal) -> None:
        """Drop the requests of a conversation that is over: an answer could reach no one any more."""
        if self.ledger.forget_conversation(who.bound):
            self._announce()

    def waiting(self) -> list[ApprovalRequest]:
        """The open requests."""
        return self.ledger.waiting(time.monotonic())

    async def changed(self) -> None:
        """Return at the next change of the open requests."""
        await self._changed.wait()

    @asynccontextmanager
    async def attached(self, name: str, approver: Approver, way: Way = "terminal") -> AsyncIterator[None]:
        """Attach an approver while the body runs."""
        self._approvers[name] = _Channel(approver, Answerer(PERSON, way))
        try:
            yield
        finally:
            del self._approvers[name]

    def offer(self, find: FindApprover, way: Way) -> None:
        """Add a channel that is looked up only when there is a request."""
        self._offers.append((find, way))

    async def take_response(self, asked_id: str, who: Principal, answer: Answer | None) -> None:
        """Take the answer of a repeated call. It counts only from the caller and connection that was asked.

        A dialog that was closed or declined is no answer: others may still be asked, and the request stays open.
        """
        asked = self.ledger.find(asked_id)
        if asked is None or asked.bound != who.bound or not asked.is_in_dialog:
            raise ConfirmRequired("That request is no longer open. Send the request again without requestState.")
        is_offered = asked.may_allow_in_dialog and self.may_allow_in_dialog(who, asked)
        if answer is None or (answer != "no" and not is_offered):
            asked.is_dialog_over = True
            return
        await self.take(asked_id, answer, Answerer(who, "dialog"))
        if answer == "no":
            # A no ends this call too; to run it would only ask the same again.
            self.ledger.withdraw(asked)
            raise Denied(asked)

    async def _confirm_by_token(self, token: str, who: Principal, digest: str) -> ApprovalRequest:
        asked = self.ledger.of_token(token, who, digest, time.monotonic())
        if asked is not None and asked.state == "waiting" and (approvers := await self._channels_for(asked)):
            # The person who is there gets the time to answer about a token that waits for them.
            await self._ask_all(asked, approvers)
            _refuse_if_over(asked)
        return self.ledger.spend_token(token, who, digest, time.monotonic())

    def _open_request(self, fresh: ApprovalRequest, who: Principal) -> ApprovalRequest:
        """Open the request, reusing the id of an identical open one that no call waits for."""
        now = time.monotonic()
        asked = self.ledger.open_request(who, fresh.digest, now)
        if asked is not None and asked.id not in self._waiting:
            if (asked.holds, asked.policy) == (fresh.holds, fresh.policy):
                asked.expires_at = now + WAIT_S
                return asked
            # It would show something else by now: an answer to the old request must not count for the new one.
            self.ledger.withdraw(asked)
        self.ledger.ask(fresh)
        self._announce()
        return fresh

    async def _channels_for(self, asked: ApprovalRequest) -> list["_Channel"]:
        """Every available approver for this request."""
        found = [(await find(asked), way) for find, way in self._offers]
        offered = [_Channel(approver, Answerer(PERSON, way)) for approver, way in found if approver is not None]
        return [*self._approvers.values(), *offered]

    async def _wait(self, asked: ApprovalRequest, approvers: list["_Channel"]) -> None:
        """Return at a yes. An unanswered request stays open: a person may still find it in the list."""
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
            case "waiting":
                had_owner = any(channel.by.way != "dialog" for channel in approvers)
                raise left_unanswered(asked) if had_owner else still_needs_a_yes(asked, was_shown=asked.is_in_dialog)
            case _:
                raise no_answer(asked)

    async def _ask_all(self, asked: ApprovalRequest, approvers: list["_Channel"]) -> NeedsInput | None:
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
            with anyio.move_on_after(asked.expires_at - time.monotonic()) as limit:
                async with anyio.create_task_group() as group:
                    for approver in approvers:
                        group.start_soon(put, approver)
                    await waiting.answered.wait()
                    group.cancel_scope.cancel()
        finally:
            waiting.calls -= 1
            if not waiting.calls:
                del self._waiting[asked.id]
        # The loop's clock counts whole milliseconds, so its timer may fire a little before this clock is there.
        self.ledger.expire(max(time.monotonic(), asked.expires_at) if limit.cancelled_caught else time.monotonic())
        return question

    def _announce(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _refuse_if_over(asked: ApprovalRequest) -> None:
    """Raise for a request that was denied or not answered in time."""
    if asked.state == "denied":
        raise Denied(asked)
    if asked.state == "expired":
        raise no_answer(asked)


def _yes_of(asked: ApprovalRequest) -> Yes:
    return Yes(asked.answered, asked)


async def _unrecorded(_asked: ApprovalRequest, _answer: Answer, _by: Answerer) -> str:
    return ""


def _dialog(ask: Approver, who: Principal) -> "_Channel":
    """The client's own dialog: it may always refuse, and allows only where the owner lets it, once."""

    async def put(asked: ApprovalRequest) -> Answer | None:
        answer = await ask(asked)
        if answer in (None, "no"):
            return answer
        return "yes" if asked.may_allow_in_dialog else None

    return _Channel(put, Answerer(who, "dialog"))
