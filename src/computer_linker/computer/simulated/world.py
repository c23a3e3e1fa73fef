"""The state of a simulated desktop, and its log of what reached which window."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from computer_linker.computer.facets.accessibility import Change
from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.facets.facts import InputSeen
from computer_linker.computer.facets.notifications import Notification
from computer_linker.computer.subscription import Subscription
from computer_linker.errors import NotFound
from computer_linker.model.geometry import Display, Point, Rect, Window, WindowState

_UNDESCRIBED = frozenset({"xterm"})


@dataclass
class SimulatedControl:
    """A control of a window. `bounds` is relative to the window; events are logged by its window."""

    role: str
    name: str
    bounds: Rect
    text: str | None = None
    """The content of a text field."""
    value: float | None = None
    """The value of a slider."""
    is_checked: bool | None = None
    """The state of a check box."""
    is_enabled: bool = True
    is_hidden: bool = False


@dataclass
class SimulatedWindow:
    """A window of one colour that accepts text and logs its events."""

    id: str
    title: str
    app: str
    bounds: Rect
    colour: int = 0x336699
    pid: int = 1000
    text: str = ""
    states: list[WindowState] = field(default_factory=list)
    keeps_open: bool = False
    """True when it does not close on request, as a program asking whether to save."""
    log: list[dict[str, Any]] = field(default_factory=list)
    controls: list[SimulatedControl] = field(default_factory=list)
    focus: SimulatedControl | None = None
    """The field with the keyboard focus; None means the window's own text."""

    def press(self, control: SimulatedControl) -> bool:
        """Perform a click on a control; False for one that is disabled."""
        if not control.is_enabled:
            return False
        if control.text is not None:
            self.focus = control
        if control.is_checked is not None:
            control.is_checked = not control.is_checked
        self.log.append({"event": "pressed", "role": control.role, "name": control.name})
        return True

    def control_at(self, point: Point) -> SimulatedControl | None:
        """The control at a desktop point."""
        inside = Point(x=point.x - self.bounds.x, y=point.y - self.bounds.y)
        return next((one for one in self.controls if not one.is_hidden and one.bounds.contains(inside)), None)

    def typed(self) -> str:
        """The text of the focused control or window."""
        return self.text if self.focus is None or self.focus.text is None else self.focus.text

    def type(self, text: str) -> None:
        """Replace the text of the focused control or window."""
        if self.focus is None:
            self.text = text
        else:
            self.focus.text = text

    @property
    def is_described(self) -> bool:
        """False for a program that draws its own text and exposes no tree."""
        return self.app.lower() not in _UNDESCRIBED

    @property
    def is_visible(self) -> bool:
        return "minimized" not in self.states

    def described(self, *, is_focused: bool) -> Window:
        """The window as the facets report it."""
        return Window(
            id=self.id, title=self.title, app=self.app, pid=self.pid, process=self.app.lower(), bounds=self.bounds,
            frame=self.bounds, is_focused=is_focused, is_visible=self.is_visible, states=list(self.states),
        )  # fmt: skip


@dataclass
class World:
    """Displays, windows from the top down, pointer, clipboard, installed applications and notices."""

    displays: list[Display] = field(default_factory=lambda: [one_display()])
    windows: list[SimulatedWindow] = field(default_factory=list)
    focused_id: str | None = None
    pointer: Point = field(default_factory=lambda: Point(x=0, y=0))
    clip: Clip = field(default_factory=lambda: Clip({}))
    installed: dict[str, str] = field(default_factory=lambda: {"editor": "Editor", "terminal": "Terminal"})
    notices: list[Notification] = field(default_factory=list)
    is_locked: bool = False
    made: int = 0
    _watchers: list[MemoryObjectSendStream[list[Rect]]] = field(default_factory=list)
    _listeners: list[MemoryObjectSendStream[Any]] = field(default_factory=list)
    change_subscribers: list[Subscription] = field(default_factory=list)
    """Subscribers to changes of controls."""

    def area(self) -> Rect:
        """All displays together."""
        right = max(display.bounds.right for display in self.displays)
        bottom = max(display.bounds.bottom for display in self.displays)
        return Rect(x=0, y=0, width=right, height=bottom)

    def find(self, window_id: str) -> SimulatedWindow:
        """The window of an id."""
        for window in self.windows:
            if window.id == window_id:
                return window
        raise NotFound("There is no such window.", windowId=window_id)

    def at(self, point: Point) -> SimulatedWindow | None:
        """The topmost visible window at a point."""
        return next((one for one in self.windows if one.is_visible and one.bounds.contains(point)), None)

    def focused(self) -> SimulatedWindow | None:
        """The window with the keyboard focus."""
        return next((window for window in self.windows if window.id == self.focused_id), None)

    def open(self, app: str, title: str = "", bounds: Rect | None = None, colour: int = 0x336699) -> SimulatedWindow:
        """Open a window on top with the keyboard focus."""
        self.made += 1
        place = bounds or Rect(x=40 * self.made, y=40 * self.made, width=400, height=300)
        window = SimulatedWindow(f"window-{self.made}", title or app, app, place, colour, pid=1000 + self.made)
        self.windows.insert(0, window)
        self.raise_to_top(window)
        return window

    def raise_to_top(self, window: SimulatedWindow) -> None:
        """Bring a window to the front with the keyboard focus."""
        self.windows.remove(window)
        self.windows.insert(0, window)
        if "minimized" in window.states:
            window.states.remove("minimized")
        self.focused_id = window.id
        self.changed(window.bounds)
        self.said(window, "window:activate")

    def remove(self, window: SimulatedWindow) -> None:
        """Remove a window; the next one gets the keyboard focus."""
        self.windows.remove(window)
        self.focused_id = self.windows[0].id if self.windows else None
        self.changed(window.bounds)
        self.said(window, "window:destroy")

    def changed(self, *areas: Rect) -> None:
        """Notify every screen subscriber."""
        _publish(self._watchers, list(areas))

    def said(self, window: SimulatedWindow, kind: str, path: str = "", detail: int = 0) -> None:
        """Notify every subscriber of a change to a control."""
        for subscriber in self.change_subscribers:
            at = path or f"/{window.id}"
            subscriber.put(Change(f"sim:{window.pid}", at, kind, detail, time.monotonic()))

    def happened(self, event: object) -> None:
        """Notify every subscriber of input or notices."""
        _publish(self._listeners, event)

    def hand(self, device: Literal["pointer", "keyboard"], kind: Literal["moved", "pressed", "released"]) -> None:
        """Simulate input by the person at this desktop."""
        self.happened(InputSeen(device=device, kind=kind, at_ms=int(time.monotonic() * 1000), by="device"))

    def watching(self) -> AbstractContextManager[Any]:
        """A stream of changed areas."""
        return _subscribed(self._watchers)

    def listening(self) -> AbstractContextManager[Any]:
        """A stream of input and notices."""
        return _subscribed(self._listeners)


def one_display(width: int = 1280, height: int = 800, scale: float = 1.0) -> Display:
    """A primary display of this many logical units."""
    bounds = Rect(x=0, y=0, width=width, height=height)
    return Display(
        id="display-1", name="display-1", bounds=bounds, pixel_width=round(width * scale),
        pixel_height=round(height * scale), scale=scale, is_primary=True,
    )  # fmt: skip


@contextmanager
def _subscribed(streams: list[Any]) -> Iterator[Any]:
    send, receive = anyio.create_memory_object_stream[Any](1000)
    streams.append(send)
    try:
        yield receive
    finally:
        streams.remove(send)
        send.close()
        receive.close()


def _publish(streams: list[Any], event: object) -> None:
    for stream in list(streams):
        try:
            stream.send_nowait(event)
        except anyio.WouldBlock:
            # A slow subscriber misses events; it never blocks the desktop.
            continue
