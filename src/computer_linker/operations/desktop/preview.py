"""The approval preview of a desktop act: its target as text, and a screenshot of its place."""

from functools import partial
from typing import Any

from anyio.to_thread import run_sync

from computer_linker.approvals.request import Preview
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import LinkError
from computer_linker.model.geometry import Rect
from computer_linker.operations.desktop.acting import ActInput, aim_at, aiming_of
from computer_linker.providers.images import Fit, encode
from computer_linker.providers.shots import cut, shoot
from computer_linker.providers.ui.aim import Aim, AimAt, Aiming
from computer_linker.providers.ui.shown import SeenElement, seen_at, seen_at_focus, window_digest
from computer_linker.providers.window_choice import window_by_id
from computer_linker.registry import Context
from computer_linker.vault.typed import secret_lines

_RED = b"\x30\x30\xe0\x00"
_THICK = 2


def outlined(pixmap: Pixmap, area: Rect) -> Pixmap:
    """The pixels with a red frame around a desktop area."""
    scale = pixmap.width / pixmap.area.width
    left = round((area.x - pixmap.area.x) * scale) - _THICK
    top = round((area.y - pixmap.area.y) * scale) - _THICK
    right = round((area.x + area.width - pixmap.area.x) * scale) + _THICK
    bottom = round((area.y + area.height - pixmap.area.y) * scale) + _THICK
    pixels = bytearray(pixmap.data)
    for x0, y0, x1, y1 in (
        (left, top, right, top + _THICK),
        (left, bottom - _THICK, right, bottom),
        (left, top, left + _THICK, bottom),
        (right - _THICK, top, right, bottom),
    ):
        x0, x1 = max(0, x0), min(pixmap.width, x1)
        row = _RED * max(0, x1 - x0)
        for y in range(max(0, y0), min(pixmap.height, y1)):
            start = y * pixmap.stride + x0 * 4
            pixels[start : start + len(row)] = row
    return Pixmap(pixmap.width, pixmap.height, pixmap.stride, bytes(pixels), pixmap.area)


_AROUND = 60
_FIT = Fit(max_width=720, max_height=480, max_bytes=200_000)


async def show_act(
    ctx: Context, input: ActInput | None = None, target: str | AimAt | None = None, options: Any = None
) -> Preview:
    """The element or the point of an act, else the keyboard focus."""
    at = aim_at(target, None if input is None else input.target, needed=False)
    aiming = aiming_of(ctx)
    aim = await aiming.focused() if at is None else await aiming.take(at)
    is_replaced = at is not None and getattr(options, "clear_before", False) is True
    seen = (
        await seen_at_focus(ctx.computer)
        if aim is None
        else await _described(ctx, aiming, aim, is_replaced=is_replaced)
    )
    if at is None and aim is not None:
        seen.lines.insert(0, "Where the keyboard is:")
    if isinstance(to := getattr(input, "to", None), AimAt):
        end = await _described(ctx, aiming, await aiming.take(to))
        seen.lines += ["dragged to:", *end.lines]
        seen.application = seen.application if seen.application == end.application else ""
        seen.holds |= {f"end {name}": digest for name, digest in end.holds.items()}
    if typed := secret_lines(ctx.services, input):
        seen.lines[:0] = typed
        # A secret is of no shape: a yes to other texts in this application must not cover it.
        seen.application = ""
    return about(ctx, seen)


async def show_window(ctx: Context, target: str, input: Any = None, options: Any = None) -> Preview:
    """The window of an act: its id means nothing to a person."""
    known = window_by_id(await ctx.computer.windows.list(), target, ctx.scope.policy.excluded_applications)
    place = known.frame
    line = f'the window "{known.title}" of {known.app} at {place.x:g},{place.y:g}, {place.width:g} x {place.height:g}'
    picture = partial(_picture, ctx, place, place) if known.is_visible else None
    return Preview((line,), {"window": window_digest(known)}, picture, application=known.app)


def about(ctx: Context, seen: SeenElement) -> Preview:
    """The target, with a screenshot of its place."""
    bounds = seen.bounds
    photograph = None if bounds is None else partial(_picture, ctx, bounds, _around(bounds))
    return Preview(tuple(seen.lines), seen.holds, photograph, application=seen.application)


async def _described(ctx: Context, aiming: Aiming, aim: Aim, *, is_replaced: bool = False) -> SeenElement:
    if aim.point is not None:
        return await seen_at(ctx.computer, aim.point)
    assert aim.element is not None, "an aim is an element or a point"
    seen = SeenElement()
    seen.add_element(await ctx.computer.accessibility.element(aim.element.id), aim.name, is_replaced=is_replaced)
    seen.add_window(await aiming.window(aim), aim.title)
    return seen


async def _picture(ctx: Context, bounds: Rect, wanted: Rect) -> bytes | None:
    """A part of the screen with a frame around the place, masked as every capture is; None where capture is impossible."""
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
    """The centre of the place with its surroundings, no larger than a phone shows well."""
    width, height = (min(size + 2 * _AROUND, most) for size, most in ((bounds.width, 480), (bounds.height, 360)))
    middle = (bounds.x + bounds.width // 2, bounds.y + bounds.height // 2)
    return Rect(x=middle[0] - width // 2, y=middle[1] - height // 2, width=width, height=height)
