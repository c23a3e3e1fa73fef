"""hub.machines: the machines of the fleet."""

from collections.abc import Iterator

from computer_linker.registry.owner import Context, Effect, Example, Note, Shown, Table, owner_operation
from computer_linker.service.fleet import FleetManager, HubState


def _text(result: HubState) -> Iterator[Shown]:
    if not result.machines:
        yield Note("No machine has joined. computer-linker hub invite NAME makes an invitation.")
        return
    rows = [
        (one.name, one.state, f"{one.os} {one.arch}", ", ".join(scope.id for scope in one.scopes), one.machine_id)
        for one in result.machines
    ]
    yield Table(rows, ("name", "state", "system", "scopes", "id"))
    for one in result.machines:
        if one.state == "pending":
            yield Note(f"{one.name} waits. If its owner shows the same key: computer-linker hub trust {one.key}")


@owner_operation(
    "hub.machines",
    effect=Effect.OBSERVE,
    where="service",
    text=_text,
    examples=[Example("Which machines there are.", {}, runs=False)],
)
async def hub_machines(ctx: Context) -> HubState:
    """The machines of the fleet, and which are there now."""
    return ctx.use(FleetManager).hub_state()
