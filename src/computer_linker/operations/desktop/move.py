"""desktop.move: move the pointer."""

from computer_linker.operations.desktop.acting import (
    Acted,
    ActInput,
    ActOptions,
    acted,
    aim_at,
    aiming_of,
    execution,
)
from computer_linker.operations.desktop.definition import desktop_act
from computer_linker.providers.ui.aim import AimAt
from computer_linker.registry import Context, Example


@desktop_act(
    "desktop.move",
    did="moved the pointer",
    by="pointer",
    examples=[Example("Hover over a control.", {"target": "e12.k3f9"}, runs=False)],
)
async def desktop_move(
    ctx: Context,
    target: str | AimAt | None = None,
    input: ActInput = ActInput(),
    options: ActOptions = ActOptions(),
) -> Acted:
    """Move the pointer over an element or a point in a captured frame, without pressing anything."""
    at = aim_at(target, input.target)
    aiming = aiming_of(ctx)
    async with execution(ctx, options.execution_id) as name:
        assert at is not None
        aim = await aiming.take(at)
        place = await aiming.reach(aim, ctx.computer.pointer.move)
        now = await ctx.computer.pointer.position()
        is_there = abs(now.x - place.x) <= 1 and abs(now.y - place.y) <= 1
        ctx.effect = "confirmed" if is_there else "suspected_noop"
        return acted(ctx, name, "pointer", aim)
    raise AssertionError("an ended execution raises")
