"""Screen: displays and captures."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from computer_linker.model.geometry import Display, ImageMap, Rect


@dataclass(frozen=True, slots=True)
class Pixmap:
    """Pixels as they were captured: four bytes each (blue, green, red, unused), rows of `stride` bytes.

    `area` is the part of the desktop they show; more pixels than logical units means a scaled display.
    """

    width: int
    height: int
    stride: int
    data: bytes
    area: Rect

    @property
    def map(self) -> ImageMap:
        """The translation between these pixels and the desktop."""
        return ImageMap(width=self.width, height=self.height, area=self.area)


class Screen(Protocol):
    """Displays and their pixels."""

    async def displays(self) -> list[Display]:
        """The monitors, the primary one first."""
        ...

    async def capture(self, area: Rect | None = None, *, cursor: bool = False) -> Pixmap:
        """The pixels of a desktop area (all displays when None), cut to what exists.

        Raises:
            InvalidRequest: nothing of the area is on a display.
        """
        ...

    async def capture_window(self, window_id: str, *, cursor: bool = False) -> Pixmap:
        """A window's own pixels, also where others cover it.

        Raises:
            NotFound: there is no such window.
            UnsupportedPlatform: this system cannot capture one window alone.
        """
        ...

    def changes(self) -> AsyncIterator[list[Rect]]:
        """Subscribe: the areas that changed, gathered into batches, for as long as it is iterated."""
        ...
