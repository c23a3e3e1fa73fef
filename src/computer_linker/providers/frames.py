"""Frames: how each capture's pixels map to the desktop, so that a point in an image is clicked only where it was captured.

A frame stores the windows in its area. A point whose window has since moved, disappeared or been covered, or
whose display changed, is refused as stale instead of being clicked.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Self

from computer_linker.computer.base import Computer
from computer_linker.errors import StaleReference
from computer_linker.model.geometry import Display, ImageMap, Point, Rect, Window
from computer_linker.model.ids import new_handle
from computer_linker.services import Services

MAX_FRAMES = 256
MAX_AGE_S = 1800.0


@dataclass(frozen=True, slots=True)
class Frame:
    """One capture: its mapping, its scope, and the windows and displays at that time."""

    id: str
    scope: str
    map: ImageMap
    window_id: str | None
    windows: tuple[Window, ...]
    displays: tuple[Display, ...]
    taken_at: float = field(default_factory=time.monotonic)

    def window_at(self, point: Point) -> Window | None:
        """The topmost window at a desktop point at the time of the capture."""
        return next((one for one in self.windows if one.is_visible and one.frame.contains(point)), None)


class Frames:
    """The frames of this service, bounded in number and age."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Frame] = OrderedDict()

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls()

    def keep(
        self,
        scope: str,
        mapping: ImageMap,
        windows: list[Window],
        displays: list[Display],
        window_id: str | None = None,
    ) -> Frame:
        """Store a capture; the oldest is dropped when there are too many."""
        frame = Frame(new_handle("frame"), scope, mapping, window_id, tuple(windows), tuple(displays))
        self._kept[frame.id] = frame
        while len(self._kept) > MAX_FRAMES:
            self._kept.popitem(last=False)
        return frame

    def find(self, frame_id: str, *, scope: str) -> Frame:
        """The frame of this id. Raises StaleReference when it is unknown, too old or of another scope."""
        frame = self._kept.get(frame_id)
        if frame is None or frame.scope != scope or time.monotonic() - frame.taken_at > MAX_AGE_S:
            raise StaleReference("There is no such frame any more. Capture the screen again.", frameId=frame_id[:64])
        return frame

    async def locate(self, frame_id: str, point: Point, *, scope: str, computer: Computer) -> Point:
        """The desktop point of an image point, if the window there is unchanged.

        Raises:
            InvalidRequest: the point is outside the image.
            StaleReference: the window there moved, disappeared or was covered, or the displays changed.
        """
        frame = self.find(frame_id, scope=scope)
        place = frame.map.to_desktop(point)
        await self._check_displays(frame, computer)
        if not computer.capabilities().has("windows"):
            return place
        seen = _seen(frame, place)
        now = await computer.windows.at(place)
        if (seen and seen.id) != (now and now.id):
            raise StaleReference("Another window is at that place now. Capture again.", frameId=frame.id)
        if seen is not None and now is not None and seen.frame != now.frame:
            raise StaleReference("The window moved or changed size since the capture. Capture again.", frameId=frame.id)
        return place

    async def _check_displays(self, frame: Frame, computer: Computer) -> None:
        if tuple(await computer.screen.displays()) != frame.displays:
            raise StaleReference("The displays changed since the capture. Capture again.", frameId=frame.id)


def _seen(frame: Frame, place: Point) -> Window | None:
    if frame.window_id is None:
        return frame.window_at(place)
    return next((one for one in frame.windows if one.id == frame.window_id), None)


def area_of(windows: list[Window], window_id: str) -> Rect | None:
    """The bounds of one window in a list."""
    return next((one.frame for one in windows if one.id == window_id), None)
