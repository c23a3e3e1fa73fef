"""One question for all steps of a batch: what a person is shown, and whether a step is still that when it is reached."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

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
from computer_linker.audit.command_line import command_preview
from computer_linker.audit.redact import is_digest, preview
from computer_linker.audit.store import AuditStore
from computer_linker.dispatch.leaving import masked_line, masked_text
from computer_linker.errors import InvalidRequest, LinkError, PathOutOfScope, PermissionDenied, wire_codes
from computer_linker.model.envelope import Call, with_its_token
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope
from computer_linker.policy.engine import find_scope, judge, refuse
from computer_linker.policy.visible_text import escaped
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.context import Context, Step
from computer_linker.registry.operation import Operation
from computer_linker.registry.spelling import read_arguments

_NAMED_STEPS = 5
_MAX_TARGET = 80


class Look(NamedTuple):
    """A step as it is before the batch begins."""

    note: str
    asked: ApprovalRequest | None = None
    """What the yes to the batch is held to for this step; None where that yes does not cover it."""
    refusal: LinkError | None = None
    """Why it will be refused in any case."""


class NewContext(Protocol):
    """Makes the context in which an operation is looked at."""

    def __call__(self, *, op: Operation, scope: Scope, call: Call) -> Context: ...


async def ask_once(ctx: Context, op: Operation, call: Call, ask: Approver | None, steps: Sequence[Step]) -> Yes | None:
    """Ask a person about all steps before the first of them; None where no step needs it. Raises where the answer is no."""
    ctx.note(does=_named(ctx, steps))
    about = await ctx.about_steps(ctx, steps)
    if about is None:
        return None

    async def shown() -> Preview:
        return about

    yes = await ctx.use(Approvals).confirm(call, op, ctx.scope, ctx.principal, ask, shown)
    covered = () if yes.asked.about is None else yes.asked.about.steps
    ctx.granted = [None if one is None else Yes(yes.approval, one) for one in covered]
    return yes


async def about_steps(ctx: Context, steps: Sequence[Step], new_context: NewContext) -> Preview | None:
    """What a person is shown of all steps; None where no step needs a yes.

    Raises where one must be refused that ends the rest.
    """
    seen = [await _look(ctx, step, new_context) for step in steps]
    if not any(one.asked for one in seen):
        return None
    for number, (step, look) in enumerate(zip(steps, seen, strict=True), 1):
        if look.refusal is not None and step.ends_all:
            ctx.note(step=number)
            raise _refused(look.refusal, number, step, len(steps))
    return replace(_one_preview(steps, seen), does=_named(ctx, steps))


def _named(ctx: Context, steps: Sequence[Step]) -> str:
    """`file.write a.txt; command.run make`: what a batch is about, for the history, also when no step of it is run."""
    named = [_step_named(ctx, step.call) for step in steps[:_NAMED_STEPS]]
    return "; ".join([*named, *([f"{len(steps) - _NAMED_STEPS} more"] if len(steps) > _NAMED_STEPS else [])])


def _step_named(ctx: Context, call: Call) -> str:
    """The operation with its command line or target, as far as an event of its own would keep them."""
    op = ctx.use(Catalog).by_name.get(call.op)
    if op is None:
        return "an unknown operation"
    command = call.input.get("command") if op.runs is not None and isinstance(call.input, dict) else None
    if isinstance(command, str | list):
        line = command if isinstance(command, str) else [str(word) for word in command]
        about = command_preview(masked_line(ctx.services, line))
    else:
        target = masked_text(ctx.services, call.target) if type(call.target) is str else ""
        about = preview(op.name, target[:_MAX_TARGET], ctx.use(AuditStore).key)
    return f"{op.name} {'' if is_digest(about) else about}".strip()


def _refused(why: LinkError, number: int, step: Step, count: int) -> LinkError:
    """The refusal of a batch for one of its steps: a person need not be asked about what cannot be done."""
    which = f"Step {number} of {count} ({step.call.op[:64]})"
    text = f"{which} must be refused: {why.message} No step was run, and the owner was not asked."
    kind = wire_codes().get(why.code, InvalidRequest)
    return kind(text, **{**why.details, "step": number, "notRun": count})


async def _look(ctx: Context, step: Step, new_context: NewContext) -> Look:
    """Look at a step as it is now."""
    catalog, who = ctx.use(Catalog), ctx.principal
    try:
        call = with_its_token(catalog.current(step.call))
        if "/" in call.scope and who.grants is None:
            return Look("that computer decides")
        scope, op = find_scope(ctx.services.current_config, call.scope, who), catalog.find(call.op)
        verdict = judge(scope, op, who)
        refuse(verdict, op)
        if verdict.decision == "allow":
            return Look("needs no yes")
        if step.refers:
            return Look("uses the results of earlier steps: you are asked again when they are known")
        if call.confirm is not None:
            return Look("has a token of its own")
        call, arguments = read_arguments(op, call)
        asked, canonical = new_request(call, op, scope, who, WAIT_S)
        about = await op.preview(new_context(op=op, scope=scope, call=call), arguments)
        if about is not None and isinstance(about.refusal, PermissionDenied | PathOutOfScope):
            raise about.refusal
        return _judged(ctx, await show(asked, call, canonical, about))
    except LinkError as error:
        return Look(f"will be refused: {error.message}", refusal=error)


def _judged(ctx: Context, asked: ApprovalRequest) -> Look:
    if ctx.use(Approvals).store.covering(asked) is not None:
        return Look("you allowed such requests already")
    if not asked.can_be_allowed:
        return Look("cannot be shown before the steps above it ran: you are asked again then")
    return Look("needs your yes", asked)


def _one_preview(steps: Sequence[Step], seen: Sequence[Look]) -> Preview:
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
    shown = [look.asked.about for look in seen if look.asked is not None and look.asked.about is not None]
    pictures = (about.photograph for about in shown)
    return Preview(
        tuple(lines),
        holds,
        photograph=next((picture for picture in pictures if picture is not None), None),
        is_once=any(about.is_once for about in shown),
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
