"""hub.start: be the hub of a fleet."""

from computer_linker.fleet.settings import HubRequest
from computer_linker.registry.owner import Context, Effect, Example, Note, owner_operation
from computer_linker.service.changing_config import first_config
from computer_linker.service.fleet import FleetManager, HubState


@owner_operation(
    "hub.start",
    did="started a hub[ at {server}]",
    effect=Effect.CHANGE,
    where="service",
    text=lambda result: [f"The hub's key: {result.key}", Note(f"server: {result.url}")],
    examples=[Example("A server of its own, to try it.", {"input": {"embedded": True}}, runs=False)],
)
async def hub_start(ctx: Context, input: HubRequest = HubRequest()) -> HubState:
    """Be the hub of a fleet, in the background: `hub` without a command serves in the foreground."""
    await first_config(ctx)
    fleet = ctx.use(FleetManager)
    state = await fleet.start_hub(input)
    stored = fleet.settings.hub
    is_stored = stored is not None and stored.place.url == state.url
    ctx.note(server=state.url, key_sha256=state.key, embedded=state.embedded, connected=state.connected)
    ctx.effect = "confirmed" if is_stored and (state.connected or not fleet.is_hub) else "partial"
    return state
