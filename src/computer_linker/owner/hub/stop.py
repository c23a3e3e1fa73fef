"""hub.stop: be a hub no more."""

from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation
from computer_linker.service.fleet import FleetManager


class HubStopped(Model):
    stopped: bool


@owner_operation(
    "hub.stop",
    did="stopped the hub[ at {server}]",
    effect=Effect.CHANGE,
    where="service",
    text=lambda _: ["This computer is no longer a hub."],
    examples=[Example("Stop.", {}, runs=False)],
)
async def hub_stop(ctx: Context) -> HubStopped:
    """Be a hub no more. Its machines are remembered."""
    fleet = ctx.use(FleetManager)
    state = fleet.hub_state()
    ctx.note(server=state.url, machines=len(state.machines))
    await fleet.stop_hub()
    ctx.effect = "confirmed" if not fleet.is_hub and fleet.settings.hub is None else "partial"
    return HubStopped(stopped=not fleet.is_hub)
