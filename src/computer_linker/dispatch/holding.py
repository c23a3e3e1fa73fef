"""Holds a call to what a person was shown, from their yes to its effect."""

from computer_linker.policy.confirm import Asked, check_unchanged
from computer_linker.providers.approvals import Look
from computer_linker.registry.context import Context


def hold_to(ctx: Context, yes: Asked, look: Look) -> None:
    """Look again at what the person saw, at the last moment before the effect: where the intent is made durable."""
    recorded = ctx.durable_intent

    async def gate() -> None:
        await recorded()
        check_unchanged(yes, await look())

    ctx.durable_intent = gate
    # A process that makes the intent durable by itself would start without coming by the gate.
    ctx.unsynced_intent = None
