"""Windows and applications: listing, opening, focusing, placing and closing them."""

import builtins
from collections.abc import Sequence
from typing import Protocol

from computer_linker.model.base import Model
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


class App(Model):
    """An installed application, and its process ids where it runs."""

    id: str
    name: str
    pids: list[int] = []
    windows: list[str] = []
    """The ids of its windows."""


class Apps(Protocol):
    """The applications a person could start."""

    async def list(self, *, running_only: bool = False) -> list[App]:
        """The installed applications by name, and running ones without a desktop entry."""
        ...

    async def open(self, app: str, arguments: Sequence[str] = ()) -> App:
        """Start an installed application (its id or name) with files or addresses; returns once its window shows.

        Raises:
            NotFound: no installed application has this id or name.
        """
        ...

    async def close(self, app: str) -> bool:
        """Ask all its windows to close; True once they are gone."""
        ...

    async def focus(self, app: str) -> App:
        """Bring its topmost window to the front."""
        ...
