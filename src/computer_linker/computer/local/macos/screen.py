"""Screen on macOS, by Quartz."""

from collections.abc import AsyncIterator
from typing import Any

from anyio import to_thread

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.local.macos.windows import need_screen_recording, window_number, window_place
from computer_linker.errors import ExecutionFailed, InvalidRequest, UnsupportedPlatform
from computer_linker.model.geometry import Display, Rect

_MAX_DISPLAYS = 32


class MacScreen:
    """Displays and pixels. Logical units are points; a Retina display has two pixels a point."""

    async def displays(self) -> list[Display]:
        """The displays, the main one first."""
        return await to_thread.run_sync(_displays)

    async def capture(self, area: Rect | None = None, *, cursor: bool = False) -> Pixmap:
        """A part of the desktop."""
        return await to_thread.run_sync(_capture, area)

    async def capture_window(self, window_id: str, *, cursor: bool = False) -> Pixmap:
        """A window's own pixels, also where others cover it."""
        return await to_thread.run_sync(_capture_window, window_id)

    def changes(self) -> AsyncIterator[list[Rect]]:
        """Not offered."""
        raise UnsupportedPlatform("Changes on the screen are not told on macOS yet.")


def _displays() -> list[Display]:
    import Quartz

    _, ids, count = Quartz.CGGetActiveDisplayList(_MAX_DISPLAYS, None, None)
    main = Quartz.CGMainDisplayID()
    found = [_display(Quartz, number, is_primary=number == main) for number in ids[:count]]
    if not found:
        raise UnsupportedPlatform("There is no desktop in this session.")
    return sorted(found, key=lambda display: not display.is_primary)


def _display(quartz: Any, number: int, *, is_primary: bool) -> Display:
    place, mode = quartz.CGDisplayBounds(number), quartz.CGDisplayCopyDisplayMode(number)
    bounds = _rect(place)
    width = quartz.CGDisplayModeGetPixelWidth(mode)
    return Display(
        id=str(number), name=str(number), bounds=bounds, pixel_width=width,
        pixel_height=quartz.CGDisplayModeGetPixelHeight(mode), scale=round(width / max(1, bounds.width), 4),
        is_primary=is_primary,
    )  # fmt: skip


def _capture(area: Rect | None) -> Pixmap:
    import Quartz

    need_screen_recording()
    whole = _union([display.bounds for display in _displays()])
    shown = whole if area is None else area.intersection(whole)
    if shown.is_empty:
        raise InvalidRequest("Nothing of that area is on a display.", desktop=whole.to_wire())
    image = Quartz.CGWindowListCreateImage(
        Quartz.CGRectMake(shown.x, shown.y, shown.width, shown.height),
        Quartz.kCGWindowListOptionOnScreenOnly,
        Quartz.kCGNullWindowID,
        Quartz.kCGWindowImageDefault,
    )
    return _pixmap(Quartz, image, shown)


def _capture_window(window_id: str) -> Pixmap:
    import Quartz

    need_screen_recording()
    number = window_number(window_id)
    image = Quartz.CGWindowListCreateImage(
        Quartz.CGRectNull,
        Quartz.kCGWindowListOptionIncludingWindow,
        number,
        Quartz.kCGWindowImageBoundsIgnoreFraming,
    )
    return _pixmap(Quartz, image, window_place(number))


def _pixmap(quartz: Any, image: Any, area: Rect) -> Pixmap:
    if image is None:
        raise ExecutionFailed("macOS gave no picture; the screen may be locked.")
    width, height = quartz.CGImageGetWidth(image), quartz.CGImageGetHeight(image)
    stride = quartz.CGImageGetBytesPerRow(image)
    data = bytes(quartz.CGDataProviderCopyData(quartz.CGImageGetDataProvider(image)))
    return Pixmap(width, height, stride, data[: stride * height], area)


def _rect(place: Any) -> Rect:
    return Rect(
        x=int(place.origin.x), y=int(place.origin.y), width=int(place.size.width), height=int(place.size.height)
    )


def _union(areas: list[Rect]) -> Rect:
    left, top = min(area.x for area in areas), min(area.y for area in areas)
    right, bottom = max(area.right for area in areas), max(area.bottom for area in areas)
    return Rect(x=left, y=top, width=right - left, height=bottom - top)
