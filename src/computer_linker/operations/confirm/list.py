"""confirm.list: what this caller has asked for and no person has answered yet."""

from typing import Annotated

from pydantic import Field

from computer_linker.approvals.approvals import Approvals
from computer_linker.registry import Context, Effect, Example, Model, operation


class PendingConfirmation(Model):
    id: str
    op: str
    digest: str
    seconds_left: int


class PendingConfirmations(Model):
    pending: Annotated[list[PendingConfirmation], Field(description="This caller's own, in this scope.")]


@operation(
    "confirm.list",
    did="listed approvals",
    effect=Effect.OBSERVE,
    on="any",
    examples=[Example("What still waits for a person?", {})],
)
async def confirm_list(ctx: Context) -> PendingConfirmations:
    """List the confirmations of this scope that you asked for and that still wait for a person."""
    who = ctx.principal
    waiting = [asked for asked in ctx.use(Approvals).waiting() if asked.scope == ctx.scope.id]
    # A client with the same credential in another session is another caller: its tokens are not for this one.
    mine = [asked for asked in waiting if who.is_owner or asked.bound == who.bound]
    return PendingConfirmations(
        pending=[
            PendingConfirmation(id=asked.id, op=asked.op, digest=asked.digest, seconds_left=asked.seconds_left)
            for asked in mine
        ]
    )
