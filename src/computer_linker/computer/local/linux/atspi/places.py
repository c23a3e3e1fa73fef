"""Placements of applications' windows and pop-ups, to convert toolkit extents to desktop rectangles."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.errors import OsPermissionRequired, ProviderUnavailable, UnsupportedPlatform
from computer_linker.model.geometry import Rect, Window

if TYPE_CHECKING:
    from computer_linker.computer.facets.windows import Windows

# Converts the extents a toolkit reports to desktop coordinates. On X11 most toolkits answer in screen coordinates, in
# their own logical units; GTK 4, and every toolkit on Wayland, answers relative to its window's content. The window
# system's own rectangle of the window gives the scale and the origin.

Extents = tuple[int, int, int, int]
_FAR = 1_000_000
_MAX_SHADOW = 80


@dataclass(frozen=True, slots=True)
class Placement:
    """The transformation of one window's extents to desktop rectangles."""

    scale: float = 1.0
    from_x: float = 0.0
    from_y: float = 0.0
    to_x: float = 0.0
    to_y: float = 0.0

    def __call__(self, extents: Extents) -> Rect | None:
        """The desktop rectangle; None for an empty or unplaced one."""
        x, y, width, height = extents
        if self.to_x > _FAR:
            return None
        if width <= 0 or height <= 0 or abs(x) > _FAR or abs(y) > _FAR or max(width, height) > _FAR:
            return None
        return Rect(
            x=round((x - self.from_x) * self.scale + self.to_x),
            y=round((y - self.from_y) * self.scale + self.to_y),
            width=max(1, round(width * self.scale)),
            height=max(1, round(height * self.scale)),
        )


AS_SAID = Placement()
NOWHERE = Placement(to_x=2 * _FAR)
"""For a window whose position is unknown: no bounds are better than wrong ones."""


def is_window_relative(app: Application) -> bool:
    """True for toolkits whose `screen` coordinates are relative to the window."""
    return app.toolkit.lower() == "gtk" and app.toolkit_version.startswith("4")


def placement(
    app: Application, title: str, frame: Extents, windows: Sequence[Window], *, on_wayland: bool = False
) -> Placement:
    """The placement of an application's window, from the frame it reports and the window system's rectangle."""
    window = matching(app, title, windows)
    is_relative = on_wayland or is_window_relative(app)
    if window is None or frame[2] <= 0 or frame[3] <= 0:
        return NOWHERE if is_relative else AS_SAID
    scale = _scale(window, frame)
    if scale == 1.0 and not is_relative:
        return AS_SAID
    # A window that draws its own shadow is larger than its frame by the same margin on both sides.
    margin_x = (window.bounds.width - frame[2] * scale) / 2
    margin_y = (window.bounds.height - frame[3] * scale) / 2
    if min(margin_x, margin_y) <= 0 or max(margin_x, margin_y) > _MAX_SHADOW:
        # A window being resized differs from its frame for a moment; that is not a shadow.
        margin_x = margin_y = 0.0
    return Placement(scale, frame[0], frame[1], window.bounds.x + margin_x, window.bounds.y + margin_y)


def matching(app: Application, title: str, windows: Sequence[Window]) -> Window | None:
    """The window system's window for an application's window: by process, then by title."""
    own = [window for window in windows if app.pid is not None and window.pid == app.pid]
    titled = [window for window in (own or windows) if title and window.title == title[:200]]
    if titled:
        return titled[0]
    return own[0] if len(own) == 1 else None


def _scale(window: Window, frame: Extents) -> float:
    across = window.bounds.width / frame[2]
    # Only whole and half steps are real scales; anything else is a shadow or border that only one side includes.
    stepped = in_steps(across)
    return stepped if stepped >= 1.25 and abs(across - stepped) < 0.1 else 1.0


def in_steps(scale: float) -> float:
    """Round to the nearest scale that can be configured."""
    return round(scale * 4) / 4


_Sizes = tuple[int, int, int, int]


class Shadows:
    """The offset of a window's corner in its surface, for each pair of sizes for which a page revealed it."""

    def __init__(self) -> None:
        self._above: dict[_Sizes, float] = {}

    def placements(
        self, app: Application, elements: Sequence[Element], extents: dict[ElementId, Extents], windows: list[Window]
    ) -> dict[ElementId, Placement]:
        """The placements of its windows and pages; None for those that cannot be located."""
        found: dict[ElementId, Placement] = {}
        parents = {one.id: one.parent for one in elements}
        pages = [one for one in elements if one.role == "document-web" and extents.get(one.id, (0, 0, 0, 0))[3] > 0]
        for top in [one for one in elements if one.parent == app.root and one.id in extents]:
            own = [page for page in pages if _is_within(page, top, parents)]
            window = matching(app, top.name, windows)
            found[top.id] = how = self._of(extents[top.id], [extents[page.id] for page in own], window)
            for page in own:
                found[page.id] = (
                    NOWHERE if window is None or how == NOWHERE else _of_page(extents[page.id], how, window)
                )
        return found

    def _of(self, frame: Extents, pages: Sequence[Extents], window: Window | None) -> Placement:
        if window is None:
            return NOWHERE
        bounds = window.bounds
        deeper, beside = frame[3] - bounds.height, (frame[2] - bounds.width) / 2
        sizes = (frame[2], frame[3], bounds.width, bounds.height)
        for x, y, width, height in pages:
            scale = in_steps(width / bounds.width)
            if scale > 0 and 0 <= (y + height) / scale - frame[1] - bounds.height <= max(0, deeper) and x >= 0:
                self._above[sizes] = (y + height) / scale - frame[1] - bounds.height
                break
        above = 0.0 if deeper == 0 else self._above.get(sizes)
        if above is None or beside < 0:
            return NOWHERE
        return Placement(1.0, frame[0], frame[1], bounds.x - beside, bounds.y - above)


def _of_page(page: Extents, frame: Placement, window: Window) -> Placement:
    scale = max(0.25, in_steps(page[2] / window.bounds.width))
    return Placement(1 / scale, frame.from_x * scale, frame.from_y * scale, frame.to_x, frame.to_y)


def _is_within(page: Element, top: Element, parents: dict[ElementId, ElementId | None]) -> bool:
    at: ElementId | None = page.id
    while at is not None and at != top.id:
        at = parents.get(at)
    return at == top.id


_PLAIN_FOR_S = 10.0
_POPUPS = frozenset({"menu", "popup-menu", "tool-tip", "dialog", "window", "alert", "list-box"})
_NOWHERE: Extents = (-1, -1, 0, 0)


class Places:
    """Queries the window system, and caches for a while which applications need no translation."""

    def __init__(self, windows: "Windows", *, on_wayland: bool = False) -> None:
        self._windows = windows
        self._on_wayland = on_wayland
        self._shadows = Shadows()
        self._plain: dict[str, float] = {}

    def is_plain(self, app: Application) -> bool:
        """True for an application whose rectangles were recently found to be desktop rectangles already."""
        return time.monotonic() - self._plain.get(app.id, -_PLAIN_FOR_S) < _PLAIN_FOR_S

    async def windows(self) -> list[Window]:
        """The windows, or none where the window system does not list them."""
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
        """The placements of the windows and pop-ups among these elements; other elements inherit their parent's."""
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
        """The placement of the first element; each is followed by its parent, up to the window."""
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
    """Placements of pop-ups. GTK 4 reports extents relative to the pop-up, so its window is found by its size."""
    found: dict[ElementId, Placement] = {}
    sizes = {(one.bounds.width, one.bounds.height): one.bounds for one in popups}
    for one in elements:
        _x, _y, width, height = extents[one.id]
        place = sizes.get((round(width * scale), round(height * scale)))
        if place is not None:
            found[one.id] = Placement(scale, 0, 0, place.x, place.y)
        elif one.parent in extents and not _holds(extents[one.parent], extents[one.id]):
            # A list in the corner of its window lies in its parent; this one does not, and no window gives its position.
            found[one.id] = NOWHERE
    return found


def _holds(outer: Extents, inner: Extents) -> bool:
    return (
        outer[0] <= inner[0]
        and outer[1] <= inner[1]
        and inner[0] + inner[2] <= outer[0] + outer[2]
        and inner[1] + inner[3] <= outer[1] + outer[3]
    )
