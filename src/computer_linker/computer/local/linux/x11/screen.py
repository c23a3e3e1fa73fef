"""Screen on X11: displays from RandR, pixels through shared memory, covered windows through Composite."""

import select
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.local.linux.x11.connection import Connection, close_display, open_display
from computer_linker.computer.local.linux.x11.shm import SharedImage
from computer_linker.computer.local.linux.x11.window_list import Properties
from computer_linker.errors import Conflict, InvalidRequest, ProviderUnavailable, UnsupportedPlatform
from computer_linker.model.geometry import Display as Monitor
from computer_linker.model.geometry import Rect

if TYPE_CHECKING:
    from Xlib.display import Display


def drawn_on(display: "Display", pixmap: Pixmap) -> Pixmap:
    """The same pixels with the cursor drawn on them; unchanged where XFixes is missing."""
    if not display.has_extension("XFIXES"):
        return pixmap
    display.xfixes_query_version()
    image = display.xfixes_get_cursor_image(display.screen().root)
    left, top = image.x - image.xhot - pixmap.area.x, image.y - image.yhot - pixmap.area.y
    pixels = bytearray(pixmap.data)
    for row in range(image.height):
        for column in range(image.width):
            x, y = left + column, top + row
            if 0 <= x < pixmap.width and 0 <= y < pixmap.height:
                _blend(pixels, y * pixmap.stride + x * 4, image.cursor_image[row * image.width + column])
    return Pixmap(pixmap.width, pixmap.height, pixmap.stride, bytes(pixels), pixmap.area)


def _blend(pixels: bytearray, at: int, argb: Any) -> None:
    alpha = argb >> 24 & 255
    if alpha == 0:
        return
    for offset, shift in ((0, 0), (1, 8), (2, 16)):
        # The cursor's colours are premultiplied by its alpha.
        pixels[at + offset] = min(255, (argb >> shift & 255) + pixels[at + offset] * (255 - alpha) // 255)


_MAX_RECTS = 500


async def damaged_areas(name: str) -> AsyncIterator[list[Rect]]:
    """Yields batches of areas changed since the last one; ends with the iteration."""
    display = await to_thread.run_sync(_watching, name)
    try:
        while True:
            await anyio.wait_readable(display.fileno())
            areas = _drained(display)
            if areas:
                yield areas
    finally:
        close_display(display)


def _watching(name: str) -> "Display":
    from Xlib.ext import damage

    display = open_display(name)
    if not display.has_extension("DAMAGE"):
        close_display(display)
        raise UnsupportedPlatform("This X server does not report changes (no DAMAGE extension).")
    display.damage_query_version()
    display.screen().root.damage_create(damage.DamageReportRawRectangles)
    display.sync()
    return display


def _drained(display: "Display") -> list[Rect]:
    from Xlib.error import ConnectionClosedError

    areas: list[Rect] = []
    try:
        while display.pending_events() and len(areas) < _MAX_RECTS:
            event: Any = display.next_event()
            if hasattr(event, "area"):
                area = event.area
                areas.append(Rect(x=area.x, y=area.y, width=area.width, height=area.height))
    except ConnectionClosedError as error:
        raise ProviderUnavailable("The X server closed the connection.") from error
    return areas


class X11Screen:
    """Screen on X11. Logical units are the X server's pixels."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._shared: tuple[Any, SharedImage | None] = (None, None)

    async def displays(self) -> list[Monitor]:
        """The RandR monitors, the primary one first."""
        return await self._connection.run(monitors)

    async def capture(self, area: Rect | None = None, *, cursor: bool = False) -> Pixmap:
        """A part of the root window."""
        return await self._connection.run(lambda display: self._capture(display, area, cursor))

    async def capture_window(self, window_id: str, *, cursor: bool = False) -> Pixmap:
        """A window's own pixels, also where others cover it."""
        return await self._connection.run(lambda display: self._capture_window(display, window_id, cursor))

    def changes(self) -> AsyncIterator[list[Rect]]:
        """The areas that Damage reports, in batches."""

        return damaged_areas(self._connection.name)

    def _capture(self, display: "Display", area: Rect | None, cursor: bool) -> Pixmap:
        whole = root_area(display)
        shown = whole if area is None else area.intersection(whole)
        if shown.is_empty:
            raise InvalidRequest("Nothing of that area is on a display.", desktop=whole.to_wire())
        root = display.screen().root
        data = self.grab(display, root.id, shown)
        pixmap = Pixmap(shown.width, shown.height, shown.width * 4, data, shown)
        return drawn_on(display, pixmap) if cursor else pixmap

    def _capture_window(self, display: "Display", window_id: str, cursor: bool) -> Pixmap:
        window = Properties(display).window(window_id)
        pixmap = window_pixels(display, window, self.grab)
        return drawn_on(display, pixmap) if cursor else pixmap

    def grab(self, display: "Display", drawable: int, area: Rect) -> bytes:
        """Capture with four bytes per pixel, by shared memory or, where the server cannot share, over the socket."""
        _four_bytes_per_pixel(display)
        shared = self._segment(display, area.width * area.height * 4)
        if shared is not None:
            return shared.grab(drawable, area.x, area.y, area.width, area.height)
        return _by_socket(display, drawable, area)

    def _segment(self, display: "Display", needed: int) -> SharedImage | None:
        owner, shared = self._shared
        if owner is display and (shared is None or shared.size >= needed):
            return shared
        if shared is not None:
            shared.close()
        whole = root_area(display)
        self._shared = (display, _try_to_share(display, max(needed, whole.width * whole.height * 4)))
        return self._shared[1]


def monitors(display: "Display") -> list[Monitor]:
    """The monitors of RandR 1.5; the whole screen when RandR is missing."""
    scale = _scale(display)
    if not display.has_extension("RANDR"):
        return [_whole_screen(display, scale)]
    found = [
        _monitor(display.get_atom_name(each.name), each, scale)
        for each in display.screen().root.xrandr_get_monitors().monitors
    ]
    found.sort(key=lambda monitor: (not monitor.is_primary, monitor.bounds.x, monitor.bounds.y))
    if not found:
        return [_whole_screen(display, scale)]
    if not found[0].is_primary:
        found[0] = found[0].model_copy(update={"is_primary": True})
    return found


def root_area(display: "Display") -> Rect:
    """The current desktop rectangle; it changes when monitors do."""
    geometry = display.screen().root.get_geometry()
    return Rect(x=0, y=0, width=geometry.width, height=geometry.height)


def _monitor(name: str, each: Any, scale: float) -> Monitor:
    bounds = Rect(x=each.x, y=each.y, width=each.width_in_pixels, height=each.height_in_pixels)
    return Monitor(
        id=name, name=name, bounds=bounds, pixel_width=bounds.width, pixel_height=bounds.height,
        scale=scale, is_primary=bool(each.primary),
    )  # fmt: skip


def _whole_screen(display: "Display", scale: float) -> Monitor:
    area = root_area(display)
    return Monitor(
        id="screen", name="screen", bounds=area, pixel_width=area.width, pixel_height=area.height,
        scale=scale, is_primary=True,
    )  # fmt: skip


def _scale(display: "Display") -> float:
    """The desktop's text scale, from the resource every toolkit reads."""
    for line in Properties(display).text(display.screen().root, "RESOURCE_MANAGER").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Xft.dpi":
            try:
                return max(0.5, min(8.0, round(float(value) / 96, 4)))
            except ValueError:
                return 1.0
    return 1.0


def _four_bytes_per_pixel(display: "Display") -> None:
    depth = display.screen().root_depth
    if depth not in (24, 32):
        raise UnsupportedPlatform(f"Capture needs a 24-bit display; this one has {depth} bits.")


def _try_to_share(display: "Display", size: int) -> SharedImage | None:
    from Xlib.error import XError

    try:
        return SharedImage(display, size)
    except (OSError, XError):
        return None


def _by_socket(display: "Display", drawable: int, area: Rect) -> bytes:
    from Xlib import X
    from Xlib.xobject.drawable import Drawable

    rows: list[bytes] = []
    # In strips: a reply has to fit the server's limits, and python-xlib copies it several times.
    step = max(1, 4_000_000 // (area.width * 4))
    target = Drawable(display.display, drawable)
    for top in range(0, area.height, step):
        height = min(step, area.height - top)
        image = target.get_image(area.x, area.y + top, area.width, height, X.ZPixmap, 0xFFFFFFFF)
        rows.append(image.data)
    return b"".join(rows)


# A window's own pixels, also where others cover it, from its Composite buffer.

Grab = Callable[["Display", int, Rect], bytes]
_REPAINT_S = 0.6
_QUIET_S = 0.04


def window_pixels(display: "Display", window: Any, grab: Grab) -> Pixmap:
    """The pixels of a window's content.

    Raises:
        Conflict: the window is minimized, so it has no pixels.
        UnsupportedPlatform: the server has no Composite extension.
    """
    from Xlib import X

    if window.get_attributes().map_state != X.IsViewable:
        raise Conflict("The window is minimized or on another workspace; focus it first.")
    if not display.has_extension("Composite"):
        raise UnsupportedPlatform("This X server cannot capture one window alone (no Composite extension).")
    display.composite_query_version()
    geometry, place = window.get_geometry(), window.translate_coords(display.screen().root, 0, 0)
    area = Rect(x=-place.x, y=-place.y, width=geometry.width, height=geometry.height)
    top = _top_level(display, window)
    origin = top.get_geometry()
    inside = Rect(x=area.x - origin.x, y=area.y - origin.y, width=geometry.width, height=geometry.height)
    data = _from_buffer(display, top, inside, grab)
    return Pixmap(area.width, area.height, area.width * 4, data, area)


def _top_level(display: "Display", window: Any) -> Any:
    """The root's child that contains the window: the window manager's frame."""
    root = display.screen().root
    for _ in range(16):
        parent = window.query_tree().parent
        if parent == root or parent == 0:
            return window
        window = parent
    return window


def _from_buffer(display: "Display", top: Any, inside: Rect, grab: Grab) -> bytes:
    pixmap = _buffer_of(display, top)
    if pixmap is None:
        # No compositing manager runs: redirect this window, and let it repaint into its buffer.
        _redirect(display, top)
        pixmap = _buffer_of(display, top)
        if pixmap is None:
            raise UnsupportedPlatform("The X server keeps no buffer of this window.")
    try:
        return grab(display, pixmap.id, inside)
    finally:
        pixmap.free()


def _buffer_of(display: "Display", top: Any) -> Any:
    from Xlib.error import CatchError

    trap = CatchError()
    pixmap = top.composite_name_window_pixmap(onerror=trap)
    display.sync()
    return None if trap.get_error() is not None else pixmap


def _redirect(display: "Display", top: Any) -> None:
    from Xlib.ext import composite, damage

    display.damage_query_version()
    watch = top.damage_create(damage.DamageReportRawRectangles)
    top.composite_redirect_window(composite.RedirectAutomatic)
    display.sync()
    _until_repainted(display)
    display.damage_destroy(watch)
    display.sync()


def _until_repainted(display: "Display") -> None:
    """Wait until the window painted itself and then stopped for a moment; bounded."""
    deadline, last = time.monotonic() + _REPAINT_S, None
    while (now := time.monotonic()) < deadline:
        if display.pending_events():
            while display.pending_events():
                display.next_event()
            last = now
        if last is not None and now - last >= _QUIET_S:
            return
        select.select([display.fileno()], [], [], _QUIET_S)
