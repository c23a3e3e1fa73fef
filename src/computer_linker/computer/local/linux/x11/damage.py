"""Changes on an X11 screen as Damage reports them, on a connection of their own."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from computer_linker.computer.local.linux.x11.connection import close_display, open_display
from computer_linker.errors import ProviderUnavailable, UnsupportedPlatform
from computer_linker.model.geometry import Rect

if TYPE_CHECKING:
    from Xlib.display import Display

_MAX_RECTS = 500


async def damaged_areas(name: str) -> AsyncIterator[list[Rect]]:
    """Batches of changed areas, each what arrived since the last; ends with the iteration."""
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
