"""What an X11 screen shows: displays from RandR, pixels through shared memory, covered windows through Composite."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.local.linux.x11 import cursor as overlay
from computer_linker.computer.local.linux.x11.connection import Connection
from computer_linker.computer.local.linux.x11.covered import window_pixels
from computer_linker.computer.local.linux.x11.properties import Properties
from computer_linker.computer.local.linux.x11.shm import SharedImage
from computer_linker.errors import InvalidRequest, UnsupportedPlatform
from computer_linker.model.geometry import Display as Monitor
from computer_linker.model.geometry import Rect

if TYPE_CHECKING:
    from Xlib.display import Display


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
        from computer_linker.computer.local.linux.x11.damage import damaged_areas

        return damaged_areas(self._connection.name)

    def _capture(self, display: "Display", area: Rect | None, cursor: bool) -> Pixmap:
        whole = root_area(display)
        shown = whole if area is None else area.intersection(whole)
        if shown.is_empty:
            raise InvalidRequest("Nothing of that area is on a display.", desktop=whole.to_wire())
        root = display.screen().root
        data = self.grab(display, root.id, shown)
        pixmap = Pixmap(shown.width, shown.height, shown.width * 4, data, shown)
        return overlay.drawn_on(display, pixmap) if cursor else pixmap

    def _capture_window(self, display: "Display", window_id: str, cursor: bool) -> Pixmap:
        window = Properties(display).window(window_id)
        pixmap = window_pixels(display, window, self.grab)
        return overlay.drawn_on(display, pixmap) if cursor else pixmap

    def grab(self, display: "Display", drawable: int, area: Rect) -> bytes:
        """Four bytes a pixel, by shared memory or, where the server cannot share, over the socket."""
        _four_bytes_a_pixel(display)
        shared = self._segment(display, area.width * area.height * 4)
        if shared is not None:
            return shared.grab(drawable, area.x, area.y, area.width, area.height)
        return _over_the_socket(display, drawable, area)

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
    """The monitors as RandR 1.5 has them; the whole screen when RandR is missing."""
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
    """The whole desktop as it is now; it changes when monitors do."""
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


def _four_bytes_a_pixel(display: "Display") -> None:
    depth = display.screen().root_depth
    if depth not in (24, 32):
        raise UnsupportedPlatform(f"Capture needs a 24-bit display; this one has {depth} bits.")


def _try_to_share(display: "Display", size: int) -> SharedImage | None:
    from Xlib.error import XError

    try:
        return SharedImage(display, size)
    except (OSError, XError):
        return None


def _over_the_socket(display: "Display", drawable: int, area: Rect) -> bytes:
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
