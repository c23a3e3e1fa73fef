"""The X11 pointer through XTEST."""

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.computer.local.linux.x11.connection import Connection
from computer_linker.computer.local.linux.x11.input import Fake, Layout
from computer_linker.computer.local.linux.x11.screen import root_area
from computer_linker.errors import InvalidRequest
from computer_linker.model.geometry import Point

if TYPE_CHECKING:
    from Xlib.display import Display

_BUTTONS: dict[Button, int] = {"left": 1, "middle": 2, "right": 3, "back": 8, "forward": 9}
_WHEEL_UP, _WHEEL_DOWN, _WHEEL_LEFT, _WHEEL_RIGHT = 4, 5, 6, 7
_ANY_BUTTON = 0x1F00
_SETTLE_S = 0.5
_LOOK_S = 0.002
_STEP = 12
"""Units between two motions of a drag: small enough that toolkits see a movement, not a jump."""


class X11Pointer:
    """Pointer on X11."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def position(self) -> Point:
        """Where the pointer is."""
        return await self._connection.run(_position)

    async def move(self, to: Point) -> None:
        """Move the pointer."""

        def work(display: "Display") -> None:
            place = _on_screen(display, to)
            Fake(display).move(*place)
            _settle(display, place)

        await self._connection.run(work)

    async def click(
        self, at: Point, *, button: Button = "left", count: int = 1, modifiers: Sequence[Modifier] = ()
    ) -> None:
        """Move, then press and release `count` times."""

        def work(display: "Display") -> None:
            fake, place = Fake(display), _on_screen(display, at)
            fake.move(*place)
            with fake.keys_held(_keycodes(display, modifiers)):
                for _ in range(count):
                    fake.click(_BUTTONS[button])
            _settle(display, place)

        await self._connection.run(work)

    async def drag(self, path: Sequence[Point], *, button: Button = "left", modifiers: Sequence[Modifier] = ()) -> None:
        """Press at the first point, move in small steps through the others, release at the last."""

        def work(display: "Display") -> None:
            places = [_on_screen(display, point) for point in path]
            fake = Fake(display)
            fake.move(*places[0])
            with fake.keys_held(_keycodes(display, modifiers)), fake.button_held(_BUTTONS[button]):
                for start, end in pairwise(places):
                    for x, y in _steps(start, end):
                        fake.move(x, y)
                        fake.sync()
            _settle(display, places[-1])

        await self._connection.run(work)

    async def scroll(self, at: Point, *, dx: int = 0, dy: int = 0, modifiers: Sequence[Modifier] = ()) -> None:
        """Wheel notches, the only scrolling XTEST has."""

        def work(display: "Display") -> None:
            fake = Fake(display)
            fake.move(*_on_screen(display, at))
            with fake.keys_held(_keycodes(display, modifiers)):
                _turn(fake, _WHEEL_DOWN if dy > 0 else _WHEEL_UP, abs(dy))
                _turn(fake, _WHEEL_RIGHT if dx > 0 else _WHEEL_LEFT, abs(dx))

        await self._connection.run(work)


def _position(display: "Display") -> Point:
    found = display.screen().root.query_pointer()
    return Point(x=found.root_x, y=found.root_y)


def _settle(display: "Display", place: tuple[int, int]) -> None:
    """Wait until the pointer is there with no button down: a window manager that grabs a press delays later events."""
    deadline = time.monotonic() + _SETTLE_S
    while time.monotonic() < deadline:
        found = display.screen().root.query_pointer()
        if (found.root_x, found.root_y) == place and not found.mask & _ANY_BUTTON:
            return
        time.sleep(_LOOK_S)


def _on_screen(display: "Display", point: Point) -> tuple[int, int]:
    area = root_area(display)
    if not area.contains(point):
        raise InvalidRequest("The point is not on a display.", desktop=area.to_wire())
    return int(point.x), int(point.y)


def _keycodes(display: "Display", modifiers: Sequence[Modifier]) -> list[int]:
    if not modifiers:
        return []
    layout = Layout(display)
    return [stroke.keycode for name in modifiers if (stroke := layout.key(name)) is not None]


def _turn(fake: Fake, button: int, notches: int) -> None:
    for _ in range(notches):
        fake.click(button)
        fake.sync()


def _steps(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    dx, dy = end[0] - start[0], end[1] - start[1]
    count = max(2, max(abs(dx), abs(dy)) // _STEP)
    return [(start[0] + dx * step // count, start[1] + dy * step // count) for step in range(1, count + 1)]
