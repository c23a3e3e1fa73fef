"""screen.lock: lock the session, so that only the person can go on."""

from computer_linker.registry import Capability, Context, Effect, Example, Model, operation


class Locked(Model):
    requested: bool


@operation(
    "screen.lock",
    needs={Capability.SESSION_LOCK},
    effect=Effect.ACT,
    on="computer",
    deadline_s=20,
    facets=("facts",),
    examples=[Example("Lock the screen.", {}, runs=False)],
)
async def screen_lock(ctx: Context) -> Locked:
    """Ask the session's screen saver to lock the screen. No operation unlocks it: that is the person's."""
    await ctx.computer.facts.lock_screen()
    # The screen saver accepted it; whether it draws its lock is not told to programs.
    ctx.effect = "unverifiable"
    return Locked(requested=True)
