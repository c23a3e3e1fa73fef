"""Sending keys: what desktop.press and desktop.hotkey share."""

from collections.abc import Sequence

from computer_linker.errors import Conflict
from computer_linker.operations.desktop.acting import (
    Acted,
    ActInput,
    ActOptions,
    act,
    acted,
    aim_at,
    aiming_of,
    check_keyboard,
    read_back,
)
from computer_linker.providers.ui.aim import AimAt
from computer_linker.providers.ui.pointing import area_of
from computer_linker.providers.ui.witness import evidence_of
from computer_linker.registry import Context


async def strike(
    ctx: Context, keys: Sequence[str], count: int, target: str | AimAt | None, input: ActInput, options: ActOptions
) -> Acted:
    """Press keys at the focus, or in an element after focusing it, and read back the effect."""
    at = aim_at(target, input.target, needed=False)
    aiming = aiming_of(ctx)
    async with act(ctx, options) as (name, watch):
        aim = await aiming.focused() if at is None else await aiming.take(at)
        if at is None:
            await check_keyboard(ctx, aim, input.route)
        if at is not None and aim is not None:
            if aim.element is None:
                raise Conflict("Keys go to an element or to the focus, not to a point. Click the point first.")
            await aiming.give_focus(aim)
        await watch.begin(
            None, None if aim is None else aim.app_id, None if aim is None else await area_of(aiming, aim)
        )
        if options.verify and aim is not None and aim.element is not None:
            watch.evidence = await evidence_of(ctx.computer.accessibility, aim.element, keys)
        await ctx.computer.keyboard.press(keys, count=count)
        await read_back(ctx, watch, options)
        return acted(ctx, name, "keys", aim)
    raise AssertionError("an ended execution raises")
