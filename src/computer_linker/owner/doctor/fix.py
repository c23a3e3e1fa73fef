"""doctor.fix: the repairs that have one right answer."""

from anyio import to_thread

from computer_linker.config.repair import repair
from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation
from computer_linker.service.settings import check


class Repairs(Model):
    repairs: list[str]


@owner_operation(
    "doctor.fix",
    effect=Effect.CHANGE,
    is_derived=False,
    needs_setup=True,
    examples=[Example("Repair what has one right answer.", {})],
)
async def doctor_fix(ctx: Context) -> Repairs:
    """Make the repairs that have one right answer."""
    done = await to_thread.run_sync(repair, ctx.services.home, check)
    ctx.effect = "confirmed"
    ctx.note(repairs=len(done))
    return Repairs(repairs=done)
