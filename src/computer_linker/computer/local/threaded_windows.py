"""Windows of a system whose calls block: each call runs in a worker thread."""

import builtins
from collections.abc import Callable
from dataclasses import dataclass

from anyio import to_thread

from computer_linker.model.geometry import Point, Rect, Window


@dataclass(frozen=True, slots=True)
class Calls:
    """The system's own functions. The argument of `listed` includes menus and other pop-ups."""

    listed: Callable[[bool], list[Window]]
    focus: Callable[[str], Window]
    place: Callable[[str, Rect], Window]
    close: Callable[[str], bool]


class ThreadedWindows:
    """Windows by blocking calls, topmost first."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def list(self) -> list[Window]:
        """Windows of applications, without panels and other system windows."""
        return await to_thread.run_sync(self._calls.listed, False)

    async def stack(self) -> builtins.list[Window]:
        """The same, menus and tooltips too."""
        return await to_thread.run_sync(self._calls.listed, True)

    async def focused(self) -> Window | None:
        """The window with the keyboard focus."""
        return next((window for window in await self.list() if window.is_focused), None)

    async def at(self, point: Point) -> Window | None:
        """The topmost window at a point."""
        return next((one for one in await self.stack() if one.is_visible and one.frame.contains(point)), None)

    async def focus(self, window_id: str) -> Window:
        """Bring a window to the front."""
        return await to_thread.run_sync(self._calls.focus, window_id)

    async def place(self, window_id: str, bounds: Rect) -> Window:
        """Move and resize a window so that its content lies there."""
        return await to_thread.run_sync(self._calls.place, window_id, bounds)

    async def close(self, window_id: str) -> bool:
        """Ask a window to close, as its own button does."""
        return await to_thread.run_sync(self._calls.close, window_id)
