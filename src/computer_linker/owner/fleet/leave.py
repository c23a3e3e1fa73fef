"""fleet.leave: out of the fleet."""

from typing import Annotated

from pydantic import Field

from computer_linker.registry.owner import Context, Effect, Example, Model, Note, owner_operation
from computer_linker.service.fleet import FleetManager


class Left(Model):
    left: Annotated[str | None, Field(description="The server; null when this machine was part of no fleet.")]


@owner_operation(
    "fleet.leave",
    did="left the fleet[ at {server}]",
    effect=Effect.CHANGE,
    where="service",
    words=("leave",),
    text=lambda result: [f"Left {result.left}." if result.left else Note("This machine is part of no fleet.")],
    examples=[Example("Leave.", {}, runs=False)],
)
async def fleet_leave(ctx: Context) -> Left:
    """Leave the fleet: this machine is no longer reached through it."""
    fleet = ctx.use(FleetManager)
    left = await fleet.leave()
    ctx.note(server=left)
    status = fleet.status()
    ctx.effect = "confirmed" if status.joined is None and not status.connected else "partial"
    return Left(left=left)
