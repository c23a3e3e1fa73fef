"""Points, rectangles, displays and windows in desktop coordinates, and how an image maps to them.

Desktop coordinates are logical: the space in which windows are placed and the pointer moves. An image may have
more pixels (a scaled display) or fewer (a capture made to fit); `ImageMap` is the one place that translates.
"""

import unicodedata
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model

# Application-chosen titles and names, made safe to show: short, without control or direction characters.

_MAX = 200
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def safe_title(text: str) -> str:
    """At most 200 characters; control, direction and invisible characters are written out as escapes."""
    cut = text[:_MAX]
    safe = "".join(_visible(character) for character in cut)
    return safe if len(safe) <= _MAX and len(text) <= _MAX else safe[: _MAX - 1] + "…"


def _visible(character: str) -> str:
    if character.isprintable() or unicodedata.category(character) not in _HIDDEN:
        return character
    return f"\\u{ord(character):04x}"


Coordinate = Annotated[float, Field(allow_inf_nan=False, ge=-1_000_000, le=1_000_000)]
Whole = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]
Extent = Annotated[int, Field(ge=0, le=1_000_000)]
Shown = AfterValidator(safe_title)
"""An application's own title, made safe to show, also when a paired computer reports it."""


class Point(Model):
    """A place on the desktop, or in an image where said so."""

    x: Coordinate
    y: Coordinate


class Rect(Model):
    """A rectangle; `x` and `y` are its upper left corner."""

    x: Whole
    y: Whole
    width: Extent
    height: Extent

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height

    @property
    def center(self) -> Point:
        return Point(x=self.x + self.width / 2, y=self.y + self.height / 2)

    @property
    def is_empty(self) -> bool:
        return self.width == 0 or self.height == 0

    def contains(self, point: Point) -> bool:
        """True when the point lies inside; the right and bottom edges are outside."""
        return self.x <= point.x < self.right and self.y <= point.y < self.bottom

    def intersection(self, other: "Rect") -> "Rect":
        """The part both share; empty when they do not meet."""
        x, y = max(self.x, other.x), max(self.y, other.y)
        right, bottom = min(self.right, other.right), min(self.bottom, other.bottom)
        return Rect(x=x, y=y, width=max(0, right - x), height=max(0, bottom - y))

    def moved(self, dx: int, dy: int) -> "Rect":
        return Rect(x=self.x + dx, y=self.y + dy, width=self.width, height=self.height)


class ImageMap(Model):
    """How an image of `width` x `height` pixels shows the desktop area `area`."""

    width: Annotated[int, Field(gt=0)]
    height: Annotated[int, Field(gt=0)]
    area: Rect

    @property
    def scale(self) -> float:
        """Image pixels a logical unit."""
        return self.width / self.area.width if self.area.width else 1.0

    def to_desktop(self, point: Point) -> Point:
        """The desktop place shown at an image point. A pixel's middle maps to its middle.

        Raises:
            InvalidRequest: the point is not inside the image.
        """
        if not (0 <= point.x < self.width and 0 <= point.y < self.height):
            raise InvalidRequest(
                f"The point is outside the image, which is {self.width} x {self.height} pixels.",
                width=self.width,
                height=self.height,
            )
        return Point(
            x=self.area.x + _across(point.x, self.width, self.area.width),
            y=self.area.y + _across(point.y, self.height, self.area.height),
        )

    def to_image(self, bounds: Rect) -> Rect:
        """The pixels that show a desktop rectangle, cut to the image."""
        across, down = self.width / max(1, self.area.width), self.height / max(1, self.area.height)
        left, top = round((bounds.x - self.area.x) * across), round((bounds.y - self.area.y) * down)
        right, bottom = (
            round((bounds.right - self.area.x) * across),
            round((bounds.bottom - self.area.y) * down),
        )
        whole = Rect(x=0, y=0, width=self.width, height=self.height)
        return Rect(x=left, y=top, width=max(0, right - left), height=max(0, bottom - top)).intersection(whole)


class Display(Model):
    """One monitor: its place on the desktop and how many pixels it has."""

    id: str
    name: str
    bounds: Rect
    pixel_width: Annotated[int, Field(gt=0)]
    pixel_height: Annotated[int, Field(gt=0)]
    scale: Annotated[float, Field(gt=0, description="Pixels a logical unit; on X11 the desktop's font scale.")]
    is_primary: bool


WindowState = Literal["minimized", "maximized", "fullscreen", "modal", "above"]


class Window(Model):
    """One window. `bounds` is the content, `frame` includes the title bar and borders."""

    id: str
    title: Annotated[
        str, Shown, Field(description="At most 200 characters, control and direction characters made visible.")
    ]
    app: Annotated[str, Shown, Field(description="The application's class or id; empty when it says none.")]
    pid: int | None
    process: Annotated[str, Shown, Field(description="The name of its process; empty when it cannot be known.")] = ""
    bounds: Rect
    frame: Rect
    is_focused: bool
    is_visible: bool
    states: list[WindowState] = []


def _across(value: float, pixels: int, units: int) -> float:
    per_pixel = units / pixels
    if per_pixel > 1 and value == int(value):
        # A whole number names a pixel, and one pixel may show several units: aim at the middle of what it shows.
        return value * per_pixel + (per_pixel - 1) / 2
    return value * per_pixel
