"""doctor.fix: the repairs that have one right answer."""

from anyio import to_thread

from computer_linker.registry.owner import Context, Effect, Example, Model, owner_operation
from computer_linker.service.doctor import repair


class Repairs(Model):
    repairs: list[str]


@owner_operation(
    "doctor.fix",
    did="repaired the setup[: {change}]",
    effect=Effect.CHANGE,
    is_derived=False,
    needs_setup=True,
    examples=[Example("Repair what has one right answer.", {})],
)
async def doctor_fix(ctx: Context) -> Repairs:
    """Make the repairs that have one right answer; what they replace is kept for `undo`."""
    done = await to_thread.run_sync(repair, ctx.services.home, ctx.operation_id)
    ctx.effect = "confirmed"
    # The sentence that names the undo is no repair.
    repairs = [sentence for sentence in done if ctx.operation_id not in sentence]
    ctx.note(repairs=len(repairs), changed=" ".join(repairs) or None, unchanged=not repairs)
    return Repairs(repairs=done)
