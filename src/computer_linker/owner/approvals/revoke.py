"""approvals.revoke: take back a yes that stands."""

from typing import Annotated

from pydantic import Field

from computer_linker.approvals.approvals import Approvals
from computer_linker.errors import NotFound
from computer_linker.providers.network.asking import Asking
from computer_linker.registry.owner import Context, Effect, Example, Model, Positional, owner_operation


class RevokeInput(Model):
    standing: Annotated[
        str | None, Field(description="The id that approvals list shows; without it, all of them."), Positional()
    ] = None


class Revoked(Model):
    revoked: Annotated[int, Field(description="How many standing approvals and hosts were taken back.")]


@owner_operation(
    "approvals.revoke",
    did="ended standing approvals[ {standing}]",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [f"Took back {result.revoked}."],
    examples=[Example("Ask again from now on.", {})],
)
async def approvals_revoke(ctx: Context, input: RevokeInput = RevokeInput()) -> Revoked:
    """Take back a standing yes, or a host that is open for a while, or all of them. Calls that it covered and that still
    wait are refused."""
    store = ctx.use(Approvals).store
    revoked = store.keep_only(standing=lambda one: input.standing is not None and one.id != input.standing)
    revoked += ctx.use(Asking).end(lambda one: input.standing in (None, one.id))
    if input.standing is not None and not revoked:
        raise NotFound(f"There is no standing approval {input.standing[:60]!r}.", hint="computer-linker approvals list")
    await store.save()
    ctx.effect = "confirmed"
    ctx.note(revoked=revoked, **({} if input.standing is None else {"standing": input.standing}))
    return Revoked(revoked=revoked)
