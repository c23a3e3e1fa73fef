"""Captures the desktop: windows and pixels, with everything painted over that must not be disclosed."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Self

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Application, TreeLimits
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import InvalidRequest, LinkError, NotFound, StaleReference
from computer_linker.model.geometry import Display, ImageMap, Point, Rect, Window
from computer_linker.model.ids import new_handle, new_ulid
from computer_linker.services import Services
from computer_linker.system import os

_TIME_S = 4.0
_LIMITS = TreeLimits(max_nodes=20_000, time_s=3.5, values=False, roles=frozenset({"password-text"}))


@dataclass(slots=True)
class PasswordAreas:
    """Areas of visible password fields, and the visible applications that did not report theirs."""

    areas: list[Rect] = field(default_factory=list)
    silent: set[int] = field(default_factory=set)
    """Processes of applications with accessibility that did not answer, or not in full."""
    is_complete: bool = False
    """True when every visible application supports accessibility and answered."""


async def password_areas(computer: Computer, windows: list[Window]) -> PasswordAreas:
    """The bounds of password fields in applications with visible windows."""
    found = PasswordAreas()
    if not computer.capabilities().has("accessibility"):
        return found
    pids = {window.pid for window in windows if window.is_visible and window.pid is not None}
    try:
        applications = await computer.accessibility.applications()
    except LinkError:
        # No accessibility bus: password fields cannot be located.
        return found
    asked = [application for application in applications if application.pid in pids or not pids]
    # Applications that have not answered by the deadline stay in `silent`.
    found.silent = {application.pid for application in asked if application.pid is not None}
    with anyio.move_on_after(_TIME_S):
        async with anyio.create_task_group() as group:
            for application in asked:
                group.start_soon(_ask, computer, application, found)
    found.is_complete = not found.silent and pids <= {application.pid for application in asked}
    return found


async def _ask(computer: Computer, application: Application, found: PasswordAreas) -> None:
    try:
        tree = await computer.accessibility.tree(application.root, _LIMITS)
    except LinkError:
        return
    found.areas.extend(element.bounds for element in tree.elements if element.bounds is not None)
    # A table whose cells were not all read still counts as answered: cells hold no password fields.
    if set(tree.cut_by) <= {"children"} and application.pid is not None:
        found.silent.discard(application.pid)


_GREY = b"\x60\x60\x60\x00"


def masked(pixmap: Pixmap, areas: Iterable[Rect]) -> Pixmap:
    """The pixels with these desktop areas painted grey."""
    hidden = [area for area in (pixmap.map.to_image(each) for each in areas) if not area.is_empty]
    if not hidden:
        return pixmap
    pixels = bytearray(pixmap.data)
    for area in hidden:
        row = _GREY * area.width
        for y in range(area.y, area.bottom):
            start = y * pixmap.stride + area.x * 4
            pixels[start : start + len(row)] = row
    return Pixmap(pixmap.width, pixmap.height, pixmap.stride, bytes(pixels), pixmap.area)


@dataclass(frozen=True, slots=True)
class Shot:
    """A capture with protected areas already painted over."""

    pixmap: Pixmap
    windows: list[Window]
    displays: list[Display]
    window_id: str | None = None
    hidden: int = 0
    """How many areas were painted over."""
    all_asked: bool = True
    """False when some visible application did not report its password fields."""
    silent: int = 0
    """How many windows are painted over entirely because their application did not answer."""


async def shoot(
    computer: Computer,
    area: Rect | None = None,
    *,
    window: Window | None = None,
    cursor: bool = False,
    excluded: Sequence[str] = (),
) -> Shot:
    """Capture a desktop area, or one window alone, with excluded applications and password fields painted over.

    A window whose application supports accessibility, but did not report its password fields, is painted over entirely.
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
        # A window may move during the capture: hide its areas before and after.
        hide += excluded_areas(before, excluded) + excluded_areas(await stack_of(computer), excluded)
    window_id = None if window is None else window.id
    return Shot(masked(pixmap, hide), before, displays, window_id, len(hide), passwords.is_complete, len(unknown))


async def stack_of(computer: Computer) -> list[Window]:
    """All clickable windows, topmost first; empty where this computer cannot list them."""
    return await computer.windows.stack() if computer.capabilities().has("windows") else []


def is_excluded(window: Window, patterns: Sequence[str]) -> bool:
    """True when a window belongs to an application that the scope excludes."""
    names = (window.app.lower(), window.process.lower())
    return any(name and fnmatchcase(name, pattern.lower()) for pattern in patterns for name in names)


def excluded_areas(stack: Sequence[Window], patterns: Sequence[str]) -> list[Rect]:
    """Visible areas of excluded applications."""
    return _shown(stack, lambda window: is_excluded(window, patterns))


def _shown(stack: Sequence[Window], fits: Callable[[Window], bool], alone: Window | None = None) -> list[Rect]:
    """Visible areas of matching windows: their bounds without covered parts. A window captured alone is never covered."""
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
    """A part of a capture; `region` is relative to its upper left corner, in logical units."""
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
    # A window that draws its own shadow has a frame smaller than its bounds: hide the full bounds.
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


# Captures that are given as files: a bounded private folder below the state.

MAX_FILES = 100
MAX_BYTES = 200_000_000


class Captures:
    """A bounded folder of private files; the oldest go first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home / "captures")

    def keep(self, data: bytes, extension: str) -> Path:
        """Store one capture; blocking."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / f"{new_ulid()}.{extension}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        self._forget_oldest()
        return path

    def _forget_oldest(self) -> None:
        # Names are ULIDs, so sorting by name is sorting by age.
        kept = sorted((path for path in self._folder.iterdir() if path.is_file()), reverse=True)
        room = MAX_BYTES
        for number, path in enumerate(kept):
            room -= path.stat().st_size
            if number and (number >= MAX_FILES or room < 0):
                path.unlink(missing_ok=True)


# Frames: how each capture's pixels map to the desktop, so that a point in an image is clicked only where it was
# captured. A frame stores the windows in its area. A point whose window has since moved, disappeared or been covered,
# or whose display changed, is refused as stale instead of being clicked.

MAX_FRAMES = 256
MAX_AGE_S = 1800.0


@dataclass(frozen=True, slots=True)
class Frame:
    """One capture: its mapping, its scope, and the windows and displays at that time."""

    id: str
    scope: str
    map: ImageMap
    window_id: str | None
    windows: tuple[Window, ...]
    displays: tuple[Display, ...]
    taken_at: float = field(default_factory=time.monotonic)

    def window_at(self, point: Point) -> Window | None:
        """The topmost window at a desktop point at the time of the capture."""
        return next((one for one in self.windows if one.is_visible and one.frame.contains(point)), None)


class Frames:
    """The frames of this service, bounded in number and age."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Frame] = OrderedDict()

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls()

    def keep(
        self,
        scope: str,
        mapping: ImageMap,
        windows: list[Window],
        displays: list[Display],
        window_id: str | None = None,
    ) -> Frame:
        """Store a capture; the oldest is dropped when there are too many."""
        frame = Frame(new_handle("frame"), scope, mapping, window_id, tuple(windows), tuple(displays))
        self._kept[frame.id] = frame
        while len(self._kept) > MAX_FRAMES:
            self._kept.popitem(last=False)
        return frame

    def find(self, frame_id: str, *, scope: str) -> Frame:
        """The frame of this id. Raises StaleReference when it is unknown, too old or of another scope."""
        frame = self._kept.get(frame_id)
        if frame is None or frame.scope != scope or time.monotonic() - frame.taken_at > MAX_AGE_S:
            raise StaleReference("There is no such frame any more. Capture the screen again.", frameId=frame_id[:64])
        return frame

    async def locate(self, frame_id: str, point: Point, *, scope: str, computer: Computer) -> Point:
        """The desktop point of an image point, if the window there is unchanged.

        Raises:
            InvalidRequest: the point is outside the image.
            StaleReference: the window there moved, disappeared or was covered, or the displays changed.
        """
        frame = self.find(frame_id, scope=scope)
        place = frame.map.to_desktop(point)
        await self._check_displays(frame, computer)
        if not computer.capabilities().has("windows"):
            return place
        seen = _seen(frame, place)
        now = await computer.windows.at(place)
        if (seen and seen.id) != (now and now.id):
            raise StaleReference("Another window is at that place now. Capture again.", frameId=frame.id)
        if seen is not None and now is not None and seen.frame != now.frame:
            raise StaleReference("The window moved or changed size since the capture. Capture again.", frameId=frame.id)
        return place

    async def _check_displays(self, frame: Frame, computer: Computer) -> None:
        if tuple(await computer.screen.displays()) != frame.displays:
            raise StaleReference("The displays changed since the capture. Capture again.", frameId=frame.id)


def _seen(frame: Frame, place: Point) -> Window | None:
    if frame.window_id is None:
        return frame.window_at(place)
    return next((one for one in frame.windows if one.id == frame.window_id), None)


def area_of(windows: list[Window], window_id: str) -> Rect | None:
    """The bounds of one window in a list."""
    return next((one.frame for one in windows if one.id == window_id), None)
