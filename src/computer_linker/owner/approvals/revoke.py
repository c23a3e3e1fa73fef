"""approvals.revoke: take back what was allowed for a session."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from computer_linker.providers.approvals import Approvals
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, owner_operation


class Revoked(Model):
    revoked: Annotated[int, Field(description="How many sessions and scopes were allowed.")]


def _text(result: Revoked) -> Iterator[Shown]:
    yield f"Took back {result.revoked}."


@owner_operation(
    "approvals.revoke",
    effect=Effect.CHANGE,
    where="service",
    text=_text,
    examples=[Example("Ask again from now on.", {})],
)
async def approvals_revoke(ctx: Context) -> Revoked:
    """Take back every yes that was given for a session."""
    revoked = ctx.use(Approvals).ledger.revoke_standing()
    ctx.effect = "confirmed"
    ctx.note(revoked=revoked)
    return Revoked(revoked=revoked)
