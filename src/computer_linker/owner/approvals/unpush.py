"""approvals.unpush: no longer announce requests at an address."""

from typing import Annotated

from pydantic import Field

from computer_linker.approvals.approvals import Approvals
from computer_linker.errors import NotFound
from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, owner_operation


class UnpushInput(Model):
    push: Annotated[str, Field(description="The id that approvals list shows."), Positional()]


class Unpushed(Model):
    id: str


@owner_operation(
    "approvals.unpush",
    did="stopped the push of requests[ to {push}]",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [f"Nothing more is sent to {result.id}; its links open nothing."],
    examples=[Example("End it.", {"input": {"push": "push_0123456789abcdef01234567"}}, runs=False)],
)
async def approvals_unpush(ctx: Context, input: UnpushInput) -> Unpushed:
    """Send no more to an address. Links that it got, and browsers that they let in, are closed."""
    from computer_linker.transports.http.approval_page import ApprovalPage

    store = ctx.use(Approvals).store
    if not store.keep_only(push=lambda one: one.id != input.push):
        raise NotFound(f"There is no address {input.push[:60]!r}.", hint="computer-linker approvals list")
    await store.save()
    if (page := ctx.services.peek(ApprovalPage)) is not None:
        page.close_links(input.push)
    ctx.note(push=input.push)
    ctx.effect = "confirmed"
    return Unpushed(id=input.push)
