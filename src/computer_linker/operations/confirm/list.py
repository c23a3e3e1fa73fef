"""confirm.list: what this caller has asked for and no person has answered yet."""

from typing import Annotated

from pydantic import Field

from computer_linker.model.base import Model
from computer_linker.model.effect import Effect
from computer_linker.providers.approvals import Approvals, seconds_left
from computer_linker.registry import Context, Example, operation


class PendingConfirmation(Model):
    id: str
    op: str
    digest: str
    seconds_left: int


class PendingConfirmations(Model):
    pending: Annotated[list[PendingConfirmation], Field(description="This caller's own, in this scope.")]


@operation(
    "confirm.list",
    effect=Effect.OBSERVE,
    on="any",
    boundary="scoped-metadata",
    examples=[Example("What still waits for a person?", {})],
)
async def confirm_list(ctx: Context) -> PendingConfirmations:
    """List the confirmations of this scope that you asked for and that still wait for a person."""
    desk = ctx.use(Approvals)
    mine = [asked for asked in desk.waiting() if asked.principal == ctx.principal.id and asked.scope == ctx.scope.id]
    return PendingConfirmations(
        pending=[
            PendingConfirmation(id=asked.id, op=asked.op, digest=asked.digest, seconds_left=seconds_left(asked))
            for asked in mine
        ]
    )
