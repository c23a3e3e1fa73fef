"""tunnel.stop: close the tunnel, and open none at the next start."""

from typing import Any

from computer_linker.config.load import load
from computer_linker.registry.owner import Context, Effect, Example, Note, owner_operation
from computer_linker.service.changing_config import change_config
from computer_linker.service.tunnels import TunnelManager
from computer_linker.tunnels.record import TunnelState


@owner_operation(
    "tunnel.stop",
    did="closed the tunnel[ of {provider}]",
    effect=Effect.CHANGE,
    needs_setup=True,
    text=lambda _: [Note("No tunnel is open.")],
    examples=[Example("Close it.", {})],
)
async def tunnel_stop(ctx: Context) -> TunnelState:
    """Close the tunnel, and open none at the next start."""

    def edit(document: dict[str, Any]) -> None:
        document.setdefault("tunnel", {})["provider"] = None

    tunnels = ctx.use(TunnelManager)
    before = tunnels.state()
    ctx.note(provider=before.provider, state=before.state, address=before.public_url)
    # First, so that a tunnel that fails to close is at least not opened again.
    await change_config(ctx, edit)
    await tunnels.aclose()
    state = tunnels.state()
    is_open = state.state in ("starting", "running", "reconnecting", "waiting")
    ctx.effect = "partial" if is_open or load(ctx.services.home).tunnel.provider is not None else "confirmed"
    return state
