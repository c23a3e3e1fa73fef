"""One question for all steps of a batch: what a person is shown, and whether a step is still that when it is reached."""

from collections.abc import Sequence
from typing import NamedTuple

from computer_linker.approvals.approvals import Approvals, Approver, Describe, Yes
from computer_linker.approvals.new_request import new_request, show
from computer_linker.approvals.request import (
    WAIT_S,
    Answer,
    ApprovalRequest,
    NeedsInput,
    Preview,
    check_unchanged,
)
from computer_linker.errors import LinkError
from computer_linker.model.envelope import Call, with_its_token
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.visible_text import escaped
from computer_linker.registry.context import Context, Step
from computer_linker.registry.operation import Operation


class Look(NamedTuple):
    """A step as it is before the batch begins."""

    note: str
    asked: ApprovalRequest | None = None
    """What the yes to the batch is held to for this step; None where that yes does not cover it."""


async def look_at(ctx: Context, op: Operation, call: Call, describe: Describe) -> Look:
    """Look at a step that a person is asked about, as it is now."""
    call = with_its_token(call)
    if call.confirm is not None:
        return Look("has a token of its own")
    asked, canonical = new_request(call, op, ctx.scope, ctx.principal, WAIT_S)
    asked = await show(asked, call, canonical, await describe())
    if ctx.use(Approvals).store.covering(asked) is not None:
        return Look("you allowed such requests already")
    if not asked.can_be_allowed:
        return Look("cannot be shown before the steps above it ran: you are asked again then")
    return Look("needs your yes", asked)


def one_preview(steps: Sequence[Step], seen: Sequence[Look]) -> Preview:
    """All steps in order, each with what it would do; held to the state of every step that the yes covers."""
    lines = [f"A batch of {len(steps)} steps, run in this order. A yes covers each step that needs it:"]
    holds: dict[str, str] = {}
    for number, (step, look) in enumerate(zip(steps, seen, strict=True), 1):
        target = step.call.target if type(step.call.target) is str else ""
        where = f" in {step.call.scope}" if step.call.scope != steps[0].call.scope else ""
        lines.append(escaped(f"{number}. {step.call.op} {target}".rstrip() + f"{where} ({look.note})"))
        if look.asked is not None and look.asked.about is not None:
            lines += [f"   {line}" for line in look.asked.about.lines]
            holds |= {f"step {number}: {name}": value for name, value in look.asked.holds.items()}
    pictures = (look.asked.about.photograph for look in seen if look.asked is not None and look.asked.about is not None)
    return Preview(
        tuple(lines),
        holds,
        photograph=next((picture for picture in pictures if picture is not None), None),
        steps=tuple(look.asked for look in seen),
    )


async def is_as_shown(yes: Yes, call: Call, op: Operation, scope: Scope, who: Principal, describe: Describe) -> bool:
    """Whether a step is still what the person saw in the batch; where it is not, they are asked about it again."""
    now, _ = new_request(call, op, scope, who, WAIT_S)
    was = yes.asked
    if (now.digest, now.policy, now.bound) != (was.digest, was.policy, was.bound):
        return False
    try:
        check_unchanged(was, await describe())
    except LinkError:
        return False
    return True


def in_a_batch(ask: Approver | None) -> Approver | None:
    """The client's dialog for a step: only one that answers while the call runs.

    A client that would have to send its request again would run the steps before this one twice.
    """
    if ask is None:
        return None

    async def put(asked: ApprovalRequest) -> Answer | None:
        try:
            return await ask(asked)
        except NeedsInput:
            return None

    return put
