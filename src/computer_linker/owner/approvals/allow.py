"""approvals.allow: the owner's yes to one request, and to how many more."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, model_validator

from computer_linker.approvals.approvals import Answerer, Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest, facts_of
from computer_linker.approvals.standing import MINUTES
from computer_linker.approvals.terminal import TerminalApprovals
from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.model.event import Extent
from computer_linker.model.times import local
from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, Shown, owner_operation


class AllowInput(Model):
    asked: Annotated[str, Field(description="The id the list shows."), Positional()]
    same: Annotated[bool, Field(description="This exact request again, too.")] = False
    shape: Annotated[bool, Field(description="Requests of its shape, too: the list shows what that covers.")] = False
    minutes: Annotated[int, Field(ge=1, le=525_600, description="How long --same or --shape lasts.")] = MINUTES
    until_revoked: Annotated[bool, Field(description="Instead of a time: until approvals revoke.")] = False

    @model_validator(mode="after")
    def _one_extent(self) -> Self:
        if self.same and self.shape:
            raise ValueError("give --same or --shape, not both")
        return self


class Allowed(Model):
    id: str
    op: str
    scope: str
    extent: Extent
    covers: Annotated[str | None, Field(description="What a yes that stands covers from now on.")] = None
    standing: Annotated[str | None, Field(description="The id to revoke it by.")] = None
    expires_at: str | None = None


def _text(result: Allowed) -> Iterator[Shown]:
    yield f"Allowed {result.op} in {result.scope}{' once' if result.standing is None else ''}."
    if result.standing is not None:
        until = "until it is revoked" if result.expires_at is None else f"until {local(result.expires_at)}"
        yield f"Also allowed, {until}: {result.covers}."
        yield f"To take it back: computer-linker approvals revoke {result.standing}"


async def answer_for_owner(
    ctx: Context, asked_id: str, answer: Answer, minutes: int | None = MINUTES
) -> ApprovalRequest:
    """Apply the owner's answer; the event of this operation records it. Raises NotFound when nothing waits for it."""
    approvals = ctx.use(Approvals)
    if answer != "no" and not all(one.can_be_allowed for one in approvals.waiting() if one.id == asked_id):
        raise InvalidRequest("What it is for could not be shown, so it cannot be allowed, only denied.")
    asked = approvals.answer(asked_id, answer, Answerer(ctx.principal, "terminal"), ctx.operation_id, minutes)
    if asked is None:
        raise NotFound("Nothing waits under that id any more: it was answered, withdrawn, or its time ran out.")
    ctx.note(**facts_of(asked, answer, "terminal"))
    if answer in ("same", "shape"):
        await approvals.save()
    ctx.effect = "confirmed"
    await ctx.use(TerminalApprovals).waiting()
    return asked


@owner_operation(
    "approvals.allow",
    did="approved {request}",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[Example("Allow it once.", {"input": {"asked": "ask_0123456789abcdef01234567"}}, runs=False)],
)
async def approvals_allow(ctx: Context, input: AllowInput) -> Allowed:
    """Say yes to one request, exactly as it is shown, and with --same or --shape to later ones."""
    answer: Answer = "same" if input.same else "shape" if input.shape else "yes"
    asked = await answer_for_owner(ctx, input.asked, answer, None if input.until_revoked else input.minutes)
    made = next((one for one in ctx.use(Approvals).store.standing if one.answer == ctx.operation_id), None)
    if made is None:
        return Allowed(id=asked.id, op=asked.op, scope=asked.scope, extent="once")
    ctx.note(standing=made.id)
    return Allowed(
        id=asked.id,
        op=asked.op,
        scope=asked.scope,
        extent=made.extent,
        covers=made.text,
        standing=made.id,
        expires_at=made.expires_at,
    )
