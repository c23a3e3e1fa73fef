"""Taking a picture of the desktop: what lay where, the pixels, and everything hidden that must not leave."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import InvalidRequest, NotFound
from computer_linker.model.geometry import Display, Rect, Window
from computer_linker.providers.images.mask import masked
from computer_linker.providers.password_areas import password_areas


@dataclass(frozen=True, slots=True)
class Shot:
    """A capture with what must not be seen already painted over."""

    pixmap: Pixmap
    windows: list[Window]
    displays: list[Display]
    window_id: str | None = None
    hidden: int = 0
    """How many areas were painted over."""
    all_asked: bool = True
    """False when some application in sight could not say where its password fields are."""
    silent: int = 0
    """How many windows are painted over whole because their application did not answer."""


async def shoot(
    computer: Computer,
    area: Rect | None = None,
    *,
    window: Window | None = None,
    cursor: bool = False,
    excluded: Sequence[str] = (),
) -> Shot:
    """Capture a desktop area, or one window alone, with excluded applications and password fields painted over.

    A window whose application describes its controls, but does not say now where passwords are, is painted over whole.
    """
    displays = await computer.screen.displays()
    before = await stack_of(computer)
    if window is None:
        pixmap = await computer.screen.capture(area, cursor=cursor)
    else:
        pixmap = await computer.screen.capture_window(window.id, cursor=cursor)
    passwords = await password_areas(computer, before)
    unknown = [one.frame for one in before if one.is_visible and one.pid in passwords.silent]
    hide = [*passwords.areas, *_shown(before, lambda one: one.pid in passwords.silent, window)]
    if excluded and window is None:
        # A window may move while it is captured: hide where it was before and where it is after.
        hide += excluded_areas(before, excluded) + excluded_areas(await stack_of(computer), excluded)
    window_id = None if window is None else window.id
    return Shot(masked(pixmap, hide), before, displays, window_id, len(hide), passwords.is_complete, len(unknown))


async def stack_of(computer: Computer) -> list[Window]:
    """Everything that can take a click, or nothing where this computer cannot tell."""
    return await computer.windows.stack() if computer.capabilities().has("windows") else []


def is_excluded(window: Window, patterns: Sequence[str]) -> bool:
    """True when a window belongs to an application the scope keeps out of sight."""
    names = (window.app.lower(), window.process.lower())
    return any(name and fnmatchcase(name, pattern.lower()) for pattern in patterns for name in names)


def excluded_areas(stack: Sequence[Window], patterns: Sequence[str]) -> list[Rect]:
    """Where excluded applications show."""
    return _shown(stack, lambda window: is_excluded(window, patterns))


def _shown(stack: Sequence[Window], fits: Callable[[Window], bool], alone: Window | None = None) -> list[Rect]:
    """Where windows that fit show: their frames, less what lies above them. In a capture of one window nothing does."""
    if alone is not None:
        return [_outer(alone)] if fits(alone) else []
    shown: list[Rect] = []
    above: list[Rect] = []
    for window in stack:
        if not window.is_visible:
            continue
        if fits(window):
            shown.extend(_without([_outer(window)], above))
        else:
            above.append(window.frame)
    return shown


def find_display(displays: Sequence[Display], target: str) -> Display:
    """A display by its id, or the `primary` one."""
    if target in ("primary", ""):
        return displays[0]
    for display in displays:
        if display.id == target:
            return display
    raise NotFound(f"There is no display {target[:80]!r}.", displays=[display.id for display in displays])


def cut(pixmap: Pixmap, region: Rect | None) -> Pixmap:
    """A part of a capture; `region` counts from its upper left corner, in logical units."""
    if region is None:
        return pixmap
    wanted = region.moved(pixmap.area.x, pixmap.area.y).intersection(pixmap.area)
    pixels = pixmap.map.to_image(wanted)
    if pixels.is_empty:
        raise InvalidRequest("The region lies outside what is captured.", captured=pixmap.area.to_wire())
    rows = [
        pixmap.data[y * pixmap.stride + pixels.x * 4 : y * pixmap.stride + pixels.right * 4]
        for y in range(pixels.y, pixels.bottom)
    ]
    return Pixmap(pixels.width, pixels.height, pixels.width * 4, b"".join(rows), wanted)


def _outer(window: Window) -> Rect:
    # A window that draws its own shadow has a frame smaller than its bounds: hide all of it.
    left, top = min(window.frame.x, window.bounds.x), min(window.frame.y, window.bounds.y)
    right, bottom = max(window.frame.right, window.bounds.right), max(window.frame.bottom, window.bounds.bottom)
    return Rect(x=left, y=top, width=right - left, height=bottom - top)


def _without(areas: list[Rect], covers: Sequence[Rect]) -> list[Rect]:
    """The parts of `areas` that no cover hides."""
    for cover in covers:
        areas = [part for area in areas for part in _less(area, cover)]
    return areas


def _less(area: Rect, cover: Rect) -> list[Rect]:
    shared = area.intersection(cover)
    if shared.is_empty:
        return [area]
    parts = [
        Rect(x=area.x, y=area.y, width=area.width, height=shared.y - area.y),
        Rect(x=area.x, y=shared.bottom, width=area.width, height=area.bottom - shared.bottom),
        Rect(x=area.x, y=shared.y, width=shared.x - area.x, height=shared.height),
        Rect(x=shared.right, y=shared.y, width=area.right - shared.right, height=shared.height),
    ]
    return [part for part in parts if not part.is_empty]
