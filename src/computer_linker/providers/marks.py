"""Numbered boxes drawn over the controls of a capture, so that a model can name a number instead of a point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from computer_linker.computer.facets.screen import Pixmap
from computer_linker.model.base import Model
from computer_linker.model.geometry import ImageMap, Rect, Window
from computer_linker.providers.images.encode import from_image, to_image

MAX_MARKS = 200
_WORTH_MARKING = frozenset(
    "push-button toggle-button check-box radio-button menu menu-item check-menu-item radio-menu-item link page-tab "
    "combo-box push-button-menu text entry password-text spin-button slider list-item tree-item table-cell icon "
    "terminal autocomplete switch".split()
)
_COLOURS = ((214, 39, 40), (31, 119, 180), (44, 120, 44), (148, 63, 160), (180, 90, 10), (10, 130, 140))


class Mark(Model):
    """One numbered control of a marked capture."""

    number: int
    ref: str
    role: str
    name: str
    bounds: Annotated[Rect, Field(description="In the image's pixels.")]


@dataclass(frozen=True, slots=True)
class Marked:
    """One control that got a number."""

    number: int
    ref: str
    role: str
    name: str
    bounds: Rect
    """In desktop coordinates."""

    def in_image(self, mapping: ImageMap) -> Mark:
        """The mark in wire form, in image coordinates."""
        return Mark(
            number=self.number, ref=self.ref, role=self.role, name=self.name[:200], bounds=mapping.to_image(self.bounds)
        )


def choose(nodes: Sequence[Mapping[str, Any]], owner: Window, stack: Sequence[Window], area: Rect) -> list[Marked]:
    """The controls of a window that are visible in `area` and reachable by a click; numbered from 1."""
    chosen: list[Marked] = []
    for node in nodes:
        if node["role"] not in _WORTH_MARKING or not isinstance(node.get("bounds"), dict):
            continue
        bounds = Rect(**node["bounds"])
        seen = bounds.intersection(area)
        if seen.width < 4 or seen.height < 4 or not _is_on_top(seen, owner, stack):
            continue
        chosen.append(Marked(len(chosen) + 1, node["ref"], node["role"], node["name"], bounds))
    return chosen[:MAX_MARKS]


def draw(pixmap: Pixmap, marks: Sequence[Marked]) -> Pixmap:
    """The image with a box and a number for each mark."""
    from PIL import ImageDraw, ImageFont

    image = to_image(pixmap).copy()
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(size=13)
    for mark in marks:
        box = pixmap.map.to_image(mark.bounds)
        colour = _COLOURS[mark.number % len(_COLOURS)]
        pen.rectangle((box.x, box.y, max(box.x, box.right - 1), max(box.y, box.bottom - 1)), outline=colour, width=2)
        label = str(mark.number)
        left, top, right, bottom = pen.textbbox((0, 0), label, font=font)
        width, height = right - left + 6, bottom - top + 6
        # Above the control where there is room, so that its own text stays readable.
        y = box.y - height if box.y >= height else box.y
        x = min(max(0, box.x), max(0, image.width - width))
        pen.rectangle((x, y, x + width, y + height), fill=colour)
        pen.text((x + 3 - left, y + 3 - top), label, fill=(255, 255, 255), font=font)
    return from_image(image, pixmap)


def _is_on_top(bounds: Rect, owner: Window, stack: Sequence[Window]) -> bool:
    middle = bounds.center
    at = next((window for window in stack if window.is_visible and window.frame.contains(middle)), None)
    return at is None or at.pid == owner.pid
