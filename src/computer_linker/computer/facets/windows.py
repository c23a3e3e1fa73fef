"""Windows: listing, focusing, placing and closing windows."""

import builtins
from typing import Protocol

from computer_linker.model.geometry import Point, Rect, Window


class Windows(Protocol):
    """The windows of a desktop. Each action returns after the window system confirmed the result."""

    async def list(self) -> list[Window]:
        """All windows, the topmost first."""
        ...

    async def stack(self) -> builtins.list[Window]:
        """Everything that can take a click, topmost first: the windows, and menus and tooltips too."""
        ...

    async def focused(self) -> Window | None:
        """The window with the keyboard focus."""
        ...

    async def at(self, point: Point) -> Window | None:
        """The topmost of `stack` at this point; None on the bare desktop."""
        ...

    async def focus(self, window_id: str) -> Window:
        """Raise the window and give it the keyboard focus.

        Raises:
            NotFound: there is no such window.
            ExecutionFailed: the window system did not do it in time.
        """
        ...

    async def place(self, window_id: str, bounds: Rect) -> Window:
        """Move and resize the window's content; returns its new bounds."""
        ...

    async def close(self, window_id: str) -> bool:
        """Ask the window to close; True once it is closed, False when it stayed open (it may be asking to save)."""
        ...
