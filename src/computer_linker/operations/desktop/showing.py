"""What a person sees of an act before they say yes: what it is for, in words and as a picture of its place."""

from functools import partial
from hashlib import sha256
from typing import Any

from anyio.to_thread import run_sync

from computer_linker.errors import LinkError
from computer_linker.model.geometry import Rect
from computer_linker.operations.desktop.acting import ActInput, aim_at, aiming_of
from computer_linker.policy.confirm import About
from computer_linker.policy.preview import escaped
from computer_linker.providers.images.encode import Fit, encode
from computer_linker.providers.images.outline import outlined
from computer_linker.providers.shots import cut, shoot
from computer_linker.providers.ui.aim import Aim, AimAt
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
    if aim is None:
        return About(("Where the keyboard is; no application tells what that is.",))
    window = await aiming.window(aim)
    title = aim.title or ("" if window is None else window.title)
    bounds = await _bounds(ctx, aim)
    lines = [_what(aim, bounds), f'in the window "{title}"' if title else "in no window that has a name"]
    if at is None:
        lines.insert(0, "Where the keyboard is:")
    if isinstance(to := getattr(input, "to", None), AimAt):
        end = await aiming.take(to)
        lines.append(f"dragged to {_what(end, await _bounds(ctx, end))}")
    one = aim.element
    app = "" if aim.app is None else f"{aim.app.name}:{aim.app.pid}"
    facts = (one.role, aim.name, title, app) if one is not None else ("point", title, repr(bounds), app)
    photograph = None if bounds is None else partial(_picture, ctx, bounds, _around(bounds))
    return About(tuple(escaped(line) for line in lines), _digest(facts), photograph)


async def show_window(ctx: Context, target: str, input: Any = None, options: Any = None) -> About:
    """The window an act is for: its id says nothing to a person."""
    known = window_by_id(await ctx.computer.windows.list(), target, ctx.scope.policy.excluded_applications)
    place = known.frame
    line = f'the window "{known.title}" of {known.app} at {place.x:g},{place.y:g}, {place.width:g} x {place.height:g}'
    facts = (known.id, known.title, known.app, str(known.pid))
    return About((escaped(line),), _digest(facts), partial(_picture, ctx, place, place) if known.is_visible else None)


def _what(aim: Aim, bounds: Rect | None) -> str:
    one = aim.element
    place = "" if bounds is None else f" at {bounds.x:g},{bounds.y:g}"
    if one is None:
        return f"a point{place}"
    size = "" if bounds is None else f", {bounds.width:g} x {bounds.height:g}"
    return f'{one.role} "{aim.name[:200]}"{place}{size}'


async def _bounds(ctx: Context, aim: Aim) -> Rect | None:
    if aim.point is not None:
        return Rect(x=int(aim.point.x), y=int(aim.point.y), width=1, height=1)
    one = aim.element
    if one is not None and one.bounds is None:
        one = await ctx.computer.accessibility.element(one.id)
    return None if one is None or one.bounds is None or one.bounds.is_empty else one.bounds


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


def _digest(facts: tuple[str, ...]) -> str:
    return sha256("\0".join(facts).encode("utf-8", "surrogatepass")).hexdigest()
