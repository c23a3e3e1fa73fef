"""Where Chromium's windows and pages are on Wayland.

There it counts from the corner of its surface, which a shadow makes larger than the window, deeper below than above; its own
controls are in logical units and its pages in pixels. A page ends where its window ends, which tells the rest.
"""

from collections.abc import Sequence

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.computer.local.linux.atspi.bounds import (
    NOWHERE,
    Extents,
    Placement,
    in_steps,
    matching,
)
from computer_linker.model.geometry import Window

_Sizes = tuple[int, int, int, int]


class Shadows:
    """How far a window's corner lies below its surface's, for each pair of sizes for which a page told it."""

    def __init__(self) -> None:
        self._above: dict[_Sizes, float] = {}

    def placements(
        self, app: Application, elements: Sequence[Element], extents: dict[ElementId, Extents], windows: list[Window]
    ) -> dict[ElementId, Placement]:
        """How its windows and pages are placed; nowhere for those of which nothing tells."""
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
