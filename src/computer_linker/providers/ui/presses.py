"""When each application was last clicked from here: some ignore a second click that follows too soon."""

import time
from typing import Self

import anyio

from computer_linker.computer.facets.accessibility import Application, Element
from computer_linker.services import Services

ENTRIES = frozenset({"menu-item", "check-menu-item", "radio-menu-item"})
_GTK3_S = 0.55
"""GTK 3 treats a click on a menu entry within half a second of the opening click as that click's release."""
_KEPT = 64


class Presses:
    """The latest clicks, bounded in number."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls()

    def note(self, app: str | None) -> None:
        """Record a click on an application."""
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
