"""fleet.status: which fleet this machine joined."""

from collections.abc import Iterator

from computer_linker.registry.owner import Context, Effect, Example, Note, Shown, owner_operation
from computer_linker.service.fleet import FleetManager, FleetStatus


def status_text(result: FleetStatus) -> Iterator[Shown]:
    """The membership as text."""
    if result.joined is None:
        yield Note(f"This machine is part of no fleet. Its key: {result.key}")
        return
    yield f"Joined {result.joined.url}. This machine's key: {result.key}"
    for hub in result.joined.hubs:
        yield Note(f"{hub.name} may use here: {', '.join(hub.grants) or 'nothing (give it with --allow SCOPE)'}")
    if not result.joined.hubs:
        yield Note("No hub may use anything here. To let one: computer-linker join URL --hub KEY --allow SCOPE")


@owner_operation(
    "fleet.status",
    effect=Effect.OBSERVE,
    where="service",
    text=status_text,
    examples=[Example("Which fleet, and who may use what.", {}, runs=False)],
)
async def fleet_status(ctx: Context) -> FleetStatus:
    """The fleet this machine joined, whether it is connected, and what its hubs may use here."""
    return ctx.use(FleetManager).status()
