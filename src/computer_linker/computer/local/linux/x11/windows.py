"""X11 windows by EWMH. Each action waits for the property or the event that confirms it."""

import builtins
import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from computer_linker.computer.local.linux.x11.connection import Connection
from computer_linker.computer.local.linux.x11.window_list import Properties, describe, listed, managed_ids, stacked
from computer_linker.errors import ExecutionFailed, NotFound
from computer_linker.model.geometry import Point, Rect, Window

if TYPE_CHECKING:
    from Xlib.display import Display

_WAIT_S = 2.0
_FROM_PAGER = 2
_STATIC_GRAVITY = 10
_SET_ALL = 0xF << 8


class X11Windows:
    """Windows on X11."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> list[Window]:
        """The managed windows, topmost first."""
        return await self._connection.run(listed)

    async def stack(self) -> builtins.list[Window]:
        """Everything that can take a click, menus and tooltips too, topmost first."""
        return await self._connection.run(stacked)

    async def focused(self) -> Window | None:
        """The active window."""
        return await self._connection.run(_focused)

    async def at(self, point: Point) -> Window | None:
        """The window a click there would reach."""
        found = await self.stack()
        return next((window for window in found if window.is_visible and window.frame.contains(point)), None)

    async def focus(self, window_id: str) -> Window:
        """Activate a window, restoring it when it is minimized."""
        return await self._connection.run(lambda display: _focus(display, window_id))

    async def place(self, window_id: str, bounds: Rect) -> Window:
        """Move and resize the content of a window."""
        return await self._connection.run(lambda display: _place(display, window_id, bounds))

    async def close(self, window_id: str) -> bool:
        """Send a close request, as the title bar's button does."""
        return await self._connection.run(lambda display: _close(display, window_id))


def _focused(display: "Display") -> Window | None:
    number = Properties(display).number(display.screen().root, "_NET_ACTIVE_WINDOW")
    return next((window for window in listed(display) if number and int(window.id, 16) == number), None)


def _focus(display: "Display", window_id: str) -> Window:
    window = _known(display, window_id)
    properties, root = Properties(display), display.screen().root

    def is_active() -> bool:
        return bool(properties.number(root, "_NET_ACTIVE_WINDOW") == window.id)

    if not is_active():
        _watch(display, window)
        _send(display, window, "_NET_ACTIVE_WINDOW", _FROM_PAGER, 0, 0)
        if not _until(display, is_active):
            raise ExecutionFailed("The window manager did not give the window the focus.", windowId=window_id)
    return _described(display, window)


def _place(display: "Display", window_id: str, bounds: Rect) -> Window:
    window = _known(display, window_id)
    _watch(display, window)
    flags = _STATIC_GRAVITY | _SET_ALL | _FROM_PAGER << 12
    _send(display, window, "_NET_MOVERESIZE_WINDOW", flags, bounds.x, bounds.y, bounds.width, bounds.height)
    # A window may round its size or refuse it: after a short wait the result is read back.
    _until(display, lambda: _described(display, window).bounds == bounds, seconds=_WAIT_S / 4)
    return _described(display, window)


def _close(display: "Display", window_id: str) -> bool:
    window = _known(display, window_id)
    _watch(display, window)
    _send(display, window, "_NET_CLOSE_WINDOW", 0, _FROM_PAGER)
    return _until(display, lambda: window.id not in managed_ids(display))


def _known(display: "Display", window_id: str) -> Any:
    window = Properties(display).window(window_id)
    if window.id not in managed_ids(display):
        raise NotFound("There is no such window.", windowId=window_id)
    return window


def _described(display: "Display", window: Any) -> Window:
    found = describe(display, window.id)
    if found is None:
        raise NotFound("The window is gone.")
    return found


def _watch(display: "Display", window: Any) -> None:
    from Xlib import X

    display.screen().root.change_attributes(event_mask=X.PropertyChangeMask)
    window.change_attributes(event_mask=X.StructureNotifyMask | X.PropertyChangeMask)
    display.sync()


def _send(display: "Display", window: Any, kind: str, *numbers: int) -> None:
    from Xlib import X
    from Xlib.protocol import event

    filled = [*(number & 0xFFFFFFFF for number in numbers), 0, 0, 0, 0, 0][:5]
    message = event.ClientMessage(window=window, client_type=Properties(display).atom(kind), data=(32, filled))
    display.screen().root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
    display.flush()


def _until(display: "Display", done: Callable[[], bool], seconds: float = _WAIT_S) -> bool:
    """True once `done`; checked again on every event, and ten times a second."""
    deadline = time.monotonic() + seconds
    while not done():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        select.select([display.fileno()], [], [], min(left, 0.1))
        while display.pending_events():
            display.next_event()
    return True
