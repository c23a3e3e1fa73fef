"""What a person sees of an act before they say yes: what it is for, in words and as a picture of its place."""

from functools import partial
from typing import Any

from anyio.to_thread import run_sync

from computer_linker.errors import LinkError
from computer_linker.model.geometry import Rect
from computer_linker.operations.desktop.acting import ActInput, aim_at, aiming_of
from computer_linker.policy.confirm import About
from computer_linker.providers.images.encode import Fit, encode
from computer_linker.providers.images.outline import outlined
from computer_linker.providers.shots import cut, shoot
from computer_linker.providers.ui.aim import Aim, AimAt, Aiming
from computer_linker.providers.ui.shown import Seen, seen_at, seen_at_focus, window_digest
from computer_linker.providers.window_choice import window_by_id
from computer_linker.registry import Context

_AROUND = 60
_FIT = Fit(max_width=720, max_height=480, max_bytes=200_000)


async def show_act(
    ctx: Context, input: ActInput | None = None, target: str | AimAt | None = None, options: Any = None
) -> About:
    """The element or the point an act is for, else where the keyboard is."""
    at = aim_at(target, None if input is None else input.target, needed=False)
    aiming = aiming_of(ctx)
    aim = await aiming.focused() if at is None else await aiming.take(at)
    is_replaced = at is not None and getattr(options, "clear_before", False) is True
    seen = await seen_at_focus(ctx.computer) if aim is None else await _seen(ctx, aiming, aim, is_replaced=is_replaced)
    if at is None and aim is not None:
        seen.lines.insert(0, "Where the keyboard is:")
    if isinstance(to := getattr(input, "to", None), AimAt):
        end = await _seen(ctx, aiming, await aiming.take(to))
        seen.lines += ["dragged to:", *end.lines]
        seen.holds |= {f"end {name}": digest for name, digest in end.holds.items()}
    return about(ctx, seen)


async def show_window(ctx: Context, target: str, input: Any = None, options: Any = None) -> About:
    """The window an act is for: its id says nothing to a person."""
    known = window_by_id(await ctx.computer.windows.list(), target, ctx.scope.policy.excluded_applications)
    place = known.frame
    line = f'the window "{known.title}" of {known.app} at {place.x:g},{place.y:g}, {place.width:g} x {place.height:g}'
    picture = partial(_picture, ctx, place, place) if known.is_visible else None
    return About((line,), {"window": window_digest(known)}, picture)


def about(ctx: Context, seen: Seen) -> About:
    """What was seen, with a picture of the place."""
    bounds = seen.bounds
    photograph = None if bounds is None else partial(_picture, ctx, bounds, _around(bounds))
    return About(tuple(seen.lines), seen.holds, photograph)


async def _seen(ctx: Context, aiming: Aiming, aim: Aim, *, is_replaced: bool = False) -> Seen:
    if aim.point is not None:
        return await seen_at(ctx.computer, aim.point)
    assert aim.element is not None, "an aim is an element or a point"
    seen = Seen()
    seen.add_element(await ctx.computer.accessibility.element(aim.element.id), aim.name, is_replaced=is_replaced)
    seen.add_window(await aiming.window(aim), aim.title)
    return seen


async def _picture(ctx: Context, bounds: Rect, wanted: Rect) -> bytes | None:
    """A part of the screen with a frame around the place, masked as every capture is; None where none is to be had."""
    if not ctx.computer.capabilities().has("screen"):
        return None
    try:
        displays = [display.bounds for display in await ctx.computer.screen.displays()]
        on = next((one for one in displays if not one.intersection(bounds).is_empty), None)
        if on is None:
            return None
        shot = await shoot(ctx.computer, on, excluded=ctx.scope.policy.excluded_applications)
        part = cut(shot.pixmap, wanted.moved(-on.x, -on.y))
        return (await run_sync(partial(encode, outlined(part, bounds), "png", _FIT))).data
    except LinkError:
        return None


def _around(bounds: Rect) -> Rect:
    """The middle of the place with what lies about it, no larger than a phone shows well."""
    width, height = (min(size + 2 * _AROUND, most) for size, most in ((bounds.width, 480), (bounds.height, 360)))
    middle = (bounds.x + bounds.width // 2, bounds.y + bounds.height // 2)
    return Rect(x=middle[0] - width // 2, y=middle[1] - height // 2, width=width, height=height)
