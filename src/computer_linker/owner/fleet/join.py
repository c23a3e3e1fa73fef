"""fleet.join: make this machine reachable through a NATS server, for the hubs its owner allows."""

from collections.abc import Iterator

from computer_linker.fleet.settings import JoinRequest
from computer_linker.owner.fleet.status import fleet_status, status_text
from computer_linker.registry.owner import Context, Effect, Example, Note, Shown, owner_operation
from computer_linker.service.fleet import FleetManager, FleetStatus
from computer_linker.service.peers import grant_notes


def _text(result: FleetStatus) -> Iterator[Shown]:
    yield from status_text(result)
    if not result.connected:
        yield Note(f"error: the server cannot be reached yet: {result.problem or 'no answer'}")
        yield Note("hint: the service goes on trying; computer-linker leave ends that")


@owner_operation(
    "fleet.join",
    did="joined a fleet[ at {server}][ as {name}]",
    effect=Effect.CHANGE,
    where="service",
    words=("join",),
    bare=fleet_status,
    text=_text,
    exit_code=lambda result: 0 if result.connected else 1,
    examples=[
        Example("By an invitation.", {"input": {"creds": "/home/me/invitation.json", "grants": ["app"]}}, runs=False)
    ],
)
async def fleet_join(ctx: Context, input: JoinRequest) -> FleetStatus:
    """Join a fleet; without arguments, say which. Nothing may be used by anyone until you --allow it."""
    ctx.note(**grant_notes(input.grants))
    fleet = ctx.use(FleetManager)
    status = await fleet.join(input)
    assert status.joined is not None, "it was stored"
    ctx.note(server=status.joined.url, name=status.joined.name, connected=status.connected)
    if status.joined.hubs:
        # The hub that a request names is the last.
        ctx.note(hub=status.joined.hubs[-1].name, hub_sha256=status.joined.hubs[-1].key)
    ctx.effect = "confirmed" if status.connected else "partial"
    return status
