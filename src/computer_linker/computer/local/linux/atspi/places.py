"""Where the windows and pop-ups of applications are, so that what toolkits say of places becomes desktop rectangles."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.computer.local.linux.atspi.bounds import (
    AS_SAID,
    NOWHERE,
    Extents,
    Placement,
    is_window_relative,
    placement,
)
from computer_linker.computer.local.linux.atspi.chromium import Shadows
from computer_linker.errors import OsPermissionRequired, ProviderUnavailable, UnsupportedPlatform
from computer_linker.model.geometry import Window

if TYPE_CHECKING:
    from computer_linker.computer.facets.windows import Windows

_PLAIN_FOR_S = 10.0
_POPUPS = frozenset({"menu", "popup-menu", "tool-tip", "dialog", "window", "alert", "list-box"})
_NOWHERE: Extents = (-1, -1, 0, 0)


class Places:
    """Asks the window system, and remembers for a while which applications need no translation."""

    def __init__(self, windows: "Windows", *, on_wayland: bool = False) -> None:
        self._windows = windows
        self._on_wayland = on_wayland
        self._shadows = Shadows()
        self._plain: dict[str, float] = {}

    def is_plain(self, app: Application) -> bool:
        """True for an application whose rectangles were lately found to be desktop rectangles already."""
        return time.monotonic() - self._plain.get(app.id, -_PLAIN_FOR_S) < _PLAIN_FOR_S

    async def windows(self) -> list[Window]:
        """The windows, or none where the window system keeps them to itself."""
        try:
            return await self._windows.list()
        except (UnsupportedPlatform, ProviderUnavailable, OsPermissionRequired):
            return []

    async def windows_for(self, app: Application) -> list[Window] | None:
        """The windows, unless this application needs no translation."""
        return None if self.is_plain(app) else await self.windows()

    async def placements(
        self,
        app: Application,
        elements: Sequence[Element],
        extents: dict[ElementId, Extents],
        windows: list[Window] | None = None,
    ) -> dict[ElementId, Placement]:
        """How the windows among these elements, and pop-ups in them, are placed; the rest lies as its parent does."""
        if self.is_plain(app):
            return {}
        tops = [one for one in elements if one.parent == app.root and one.id in extents]
        if windows is None:
            windows = await self.windows()
        if self._on_wayland and app.toolkit.lower() == "chromium":
            return self._shadows.placements(app, elements, extents, windows)
        found = {
            one.id: placement(app, one.name, extents[one.id], windows, on_wayland=self._on_wayland) for one in tops
        }
        if not is_window_relative(app):
            if found and not self._on_wayland and all(how == AS_SAID for how in found.values()):
                self._plain[app.id] = time.monotonic()
            elif app.toolkit.lower() == "chromium":
                # Its own controls are in logical units, its pages in pixels.
                found.update({one.id: AS_SAID for one in elements if one.role == "document-web"})
            return found
        scale = next((how.scale for how in found.values()), 1.0)
        popups = [one for one in elements if one.role in _POPUPS and extents.get(one.id, _NOWHERE)[:2] == (0, 0)]
        if popups:
            found = {**_popups(popups, extents, await self._unmanaged(app, windows), scale), **found}
        return found

    async def nearest(
        self, app: Application, upwards: Sequence[Element], extents: dict[ElementId, Extents]
    ) -> Placement:
        """How the first of these is placed; each is followed by its parent, up to the window."""
        found = await self.placements(app, upwards, extents)
        return next((found[one.id] for one in upwards if one.id in found), AS_SAID)

    async def _unmanaged(self, app: Application, windows: Sequence[Window]) -> list[Window]:
        """Menus and other pop-ups, which the window manager does not list."""
        managed = {window.id for window in windows}
        try:
            stack = await self._windows.stack()
        except (UnsupportedPlatform, ProviderUnavailable, OsPermissionRequired):
            return []
        return [one for one in stack if one.pid == app.pid and one.id not in managed and one.is_visible]


def _popups(
    elements: Sequence[Element], extents: dict[ElementId, Extents], popups: Sequence[Window], scale: float
) -> dict[ElementId, Placement]:
    """GTK 4 counts a pop-up's places from the pop-up's own corner: find its window by its size."""
    found: dict[ElementId, Placement] = {}
    sizes = {(one.bounds.width, one.bounds.height): one.bounds for one in popups}
    for one in elements:
        _x, _y, width, height = extents[one.id]
        place = sizes.get((round(width * scale), round(height * scale)))
        if place is not None:
            found[one.id] = Placement(scale, 0, 0, place.x, place.y)
        elif one.parent in extents and not _holds(extents[one.parent], extents[one.id]):
            # A list in the corner of its window lies in what holds it; this one does not, and no window tells its place.
            found[one.id] = NOWHERE
    return found


def _holds(outer: Extents, inner: Extents) -> bool:
    return (
        outer[0] <= inner[0]
        and outer[1] <= inner[1]
        and inner[0] + inner[2] <= outer[0] + outer[2]
        and inner[1] + inner[3] <= outer[1] + outer[3]
    )
