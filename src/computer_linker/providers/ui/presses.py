"""When each application was last clicked from here: some ignore a second click that follows too soon."""

import time
from typing import Self

import anyio

from computer_linker.computer.facets.accessibility import Application, Element
from computer_linker.model.geometry import Point
from computer_linker.providers.ui.roles import PRESSED
from computer_linker.services import Services

ENTRIES = frozenset({"menu-item", "check-menu-item", "radio-menu-item"})
_GTK3_S = 0.55
"""GTK 3 treats a click on a menu entry within half a second of the opening click as that click's release."""
_DOUBLE_S = 0.55
"""Somewhat more than the usual time in which toolkits count clicks at one place as one double or triple click."""
_NEAR = 12
_KEPT = 64


class Presses:
    """The latest clicks, bounded in number."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._last: tuple[float, Point] | None = None

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls()

    def note(self, app: str | None, place: Point) -> None:
        """Record a click on an application."""
        self._last = (time.monotonic(), place)
        if app is not None:
            self._at.pop(app, None)
            self._at[app] = time.monotonic()
            while len(self._at) > _KEPT:
                del self._at[next(iter(self._at))]

    async def let_pass(self, element: Element | None, app: Application | None) -> None:
        """Wait until a click on this element will be accepted."""
        if element is None or app is None or not app.is_gtk3 or element.role not in ENTRIES:
            return
        await anyio.sleep(max(0.0, self._at.get(app.id, 0.0) + _GTK3_S - time.monotonic()))

    async def apart(self, element: Element | None, place: Point, count: int) -> None:
        """Wait until a click here is counted by itself, where a double click means something else than two clicks."""
        if self._last is None or (count == 1 and element is not None and element.role in PRESSED):
            return
        when, last = self._last
        if abs(last.x - place.x) <= _NEAR and abs(last.y - place.y) <= _NEAR:
            await anyio.sleep(max(0.0, when + _DOUBLE_S - time.monotonic()))
