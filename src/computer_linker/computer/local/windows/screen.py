"""Screen on Windows, by GDI."""

import ctypes
from collections.abc import AsyncIterator, Callable
from ctypes import wintypes
from typing import Any

from anyio import to_thread

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.local.windows.api import BitmapHeader, MonitorInfo, callback, gdi32, user32
from computer_linker.computer.local.windows.windows import handle_of, window_bounds
from computer_linker.errors import Conflict, ExecutionFailed, InvalidRequest, UnsupportedPlatform
from computer_linker.model.geometry import Display, Rect

_COPY_ALL = 0x00CC0020 | 0x40000000
_WHOLE_CONTENT = 1 | 2
_PRIMARY = 1


class WindowsScreen:
    """Displays and pixels. Logical units are pixels: the process is aware of each display's scale."""

    async def displays(self) -> list[Display]:
        """The monitors, the primary one first."""
        return await to_thread.run_sync(_displays)

    async def capture(self, area: Rect | None = None, *, cursor: bool = False) -> Pixmap:
        """A part of the desktop."""
        return await to_thread.run_sync(_capture, area)

    async def capture_window(self, window_id: str, *, cursor: bool = False) -> Pixmap:
        """A window's own content, also where others cover it."""
        return await to_thread.run_sync(_capture_window, window_id)

    def changes(self) -> AsyncIterator[list[Rect]]:
        """Not offered."""
        raise UnsupportedPlatform("Changes on the screen are not told on Windows yet.")


def _displays() -> list[Display]:
    found: list[Display] = []
    kind = callback(wintypes.BOOL, wintypes.HANDLE, wintypes.HDC, ctypes.c_void_p, wintypes.LPARAM)

    def each(monitor: Any, _context: Any, _rect: Any, _data: Any) -> bool:
        info = MonitorInfo()
        info.size = ctypes.sizeof(info)
        user32().GetMonitorInfoW(wintypes.HANDLE(monitor), ctypes.byref(info))
        area = info.monitor
        bounds = Rect(x=area.left, y=area.top, width=area.right - area.left, height=area.bottom - area.top)
        found.append(
            Display(
                id=info.device,
                name=info.device,
                bounds=bounds,
                pixel_width=bounds.width,
                pixel_height=bounds.height,
                scale=1.0,
                is_primary=bool(info.flags & _PRIMARY),
            )
        )
        return True

    user32().EnumDisplayMonitors(None, None, kind(each), 0)
    if not found:
        raise UnsupportedPlatform("There is no desktop in this session.")
    return sorted(found, key=lambda display: not display.is_primary)


def _capture(area: Rect | None) -> Pixmap:
    metric = user32().GetSystemMetrics
    whole = Rect(x=metric(76), y=metric(77), width=metric(78), height=metric(79))
    shown = whole if area is None else area.intersection(whole)
    if shown.is_empty:
        raise InvalidRequest("Nothing of that area is on a display.", desktop=whole.to_wire())
    screen = user32().GetDC(None)
    try:

        def copy(target: Any) -> bool:
            done = gdi32().BitBlt(target, 0, 0, shown.width, shown.height, screen, shown.x, shown.y, _COPY_ALL)
            return bool(done)

        return Pixmap(shown.width, shown.height, shown.width * 4, _pixels(screen, shown, copy), shown)
    finally:
        user32().ReleaseDC(None, screen)


def _capture_window(window_id: str) -> Pixmap:
    handle = handle_of(window_id)
    if user32().IsIconic(handle):
        raise Conflict("The window is minimized; focus it first.")
    area = window_bounds(handle)
    screen = user32().GetDC(None)
    try:
        data = _pixels(screen, area, lambda target: bool(user32().PrintWindow(handle, target, _WHOLE_CONTENT)))
        return Pixmap(area.width, area.height, area.width * 4, data, area)
    finally:
        user32().ReleaseDC(None, screen)


def _pixels(screen: Any, area: Rect, copy: Callable[[Any], bool]) -> bytes:
    """Let `copy` draw into a bitmap, and read it from the top down."""
    context = gdi32().CreateCompatibleDC(screen)
    bitmap = gdi32().CreateCompatibleBitmap(screen, area.width, area.height)
    before = gdi32().SelectObject(context, bitmap)
    try:
        if not copy(context):
            raise ExecutionFailed("Windows did not let the screen be captured; it may be locked.")
        header = BitmapHeader(
            size=ctypes.sizeof(BitmapHeader), width=area.width, height=-area.height, planes=1, bits=32
        )
        buffer = ctypes.create_string_buffer(area.width * area.height * 4)
        gdi32().SelectObject(context, before)
        gdi32().GetDIBits(context, bitmap, 0, area.height, buffer, ctypes.byref(header), 0)
        return buffer.raw
    finally:
        gdi32().SelectObject(context, before)
        gdi32().DeleteObject(bitmap)
        gdi32().DeleteDC(context)
