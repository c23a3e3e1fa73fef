"""A window's own pixels, also where others cover it, from its Composite buffer."""

import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.errors import Conflict, UnsupportedPlatform
from computer_linker.model.geometry import Rect

if TYPE_CHECKING:
    from Xlib.display import Display

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
