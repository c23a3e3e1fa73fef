"""screen.lock: lock the session, so that only the person can go on."""

from computer_linker.approvals.request import Preview
from computer_linker.registry import Capability, Context, Effect, Example, Model, operation

LOCKS = Preview(("locks the screen of this computer; only the person at it can unlock it",))


class Locked(Model):
    requested: bool


async def show_lock(ctx: Context) -> Preview:
    """What the person would find."""
    return LOCKS


@operation(
    "screen.lock",
    did="locked the screen",
    needs={Capability.SESSION_LOCK},
    effect=Effect.ACT,
    on="computer",
    deadline_s=20,
    shows=show_lock,
    facets=("facts",),
    examples=[Example("Lock the screen.", {}, runs=False)],
)
async def screen_lock(ctx: Context) -> Locked:
    """Ask the session's screen saver to lock the screen. No operation unlocks it: that is the person's."""
    await ctx.computer.facts.lock_screen()
    # The screen saver accepted it; whether it draws its lock is not told to programs.
    ctx.effect = "unverifiable"
    return Locked(requested=True)
