"""Pointer on wlroots compositors, by zwlr_virtual_pointer."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.computer.local.linux.halting import check_halt
from computer_linker.computer.local.linux.wayland.connection import POINTER, Connection, Seat
from computer_linker.computer.local.linux.wayland.keyboard import VirtualKeyboard
from computer_linker.computer.local.linux.wayland.outputs import Outputs
from computer_linker.computer.local.linux.wayland.wire import Wire
from computer_linker.errors import InvalidRequest, UnsupportedPlatform
from computer_linker.model.geometry import Point

BUTTONS: dict[Button, int] = {"left": 0x110, "right": 0x111, "middle": 0x112, "back": 0x113, "forward": 0x114}
_VERTICAL, _HORIZONTAL, _WHEEL = 0, 1, 0
_NOTCH = 15.0
_STEP = 12


class VirtualPointer:
    """A virtual pointer on the whole layout."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        manager = wire.bind("zwlr_virtual_pointer_manager_v1", 2)
        seat = Seat(wire)
        had_one = seat.has(POINTER)
        self._pointer = wire.new()
        wire.request(manager, 0, "on", seat.number, self._pointer)
        seat.wait_noticed(had_one)

    def move(self, x: int, y: int, width: int, height: int) -> None:
        check_halt()
        self._wire.request(self._pointer, 1, "uuuuu", _now(), x, y, width, height)
        self._frame()

    def button(self, number: int, *, down: bool) -> None:
        if down:
            check_halt()
        self._wire.request(self._pointer, 2, "uuu", _now(), number, int(down))
        self._frame()

    def turn(self, axis: int, notches: int) -> None:
        check_halt()
        self._wire.request(self._pointer, 5, "u", _WHEEL)
        self._wire.request(self._pointer, 7, "uufi", _now(), axis, notches * _NOTCH, notches)
        self._frame()

    @contextmanager
    def held(self, number: int) -> Iterator[None]:
        """Hold a button while the body runs."""
        self.button(number, down=True)
        try:
            yield
        finally:
            self.button(number, down=False)

    def _frame(self) -> None:
        self._wire.request(self._pointer, 4)


class LastPlace:
    """The last position we set. Wayland does not report the real one."""

    _last: Point | None = None

    async def position(self) -> Point:
        """The last position we set."""
        if self._last is None:
            raise UnsupportedPlatform("Wayland does not tell where the pointer is before it was moved from here.")
        return self._last


class WaylandPointer(LastPlace):
    """Pointer by a virtual device."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def move(self, to: Point) -> None:
        """Move the pointer."""
        await self._connection.run(lambda connection: self._go(connection, to))

    async def click(
        self, at: Point, *, button: Button = "left", count: int = 1, modifiers: Sequence[Modifier] = ()
    ) -> None:
        """Move, then press and release."""

        def work(connection: Connection) -> None:
            self._go(connection, at)
            pointer = connection.part(VirtualPointer)
            with _modifiers(connection, modifiers):
                for _ in range(count):
                    with pointer.held(BUTTONS[button]):
                        pass
            connection.wire.roundtrip()

        await self._connection.run(work)

    async def drag(self, path: Sequence[Point], *, button: Button = "left", modifiers: Sequence[Modifier] = ()) -> None:
        """Press at the first point, move through the others, release at the last."""

        def work(connection: Connection) -> None:
            self._go(connection, path[0])
            pointer = connection.part(VirtualPointer)
            with _modifiers(connection, modifiers), pointer.held(BUTTONS[button]):
                connection.wire.roundtrip()
                for start, end in pairwise(path):
                    for point in steps(start, end):
                        self._go(connection, point)
            connection.wire.roundtrip()

        await self._connection.run(work)

    async def scroll(self, at: Point, *, dx: int = 0, dy: int = 0, modifiers: Sequence[Modifier] = ()) -> None:
        """Whole notches of a wheel."""

        def work(connection: Connection) -> None:
            self._go(connection, at)
            pointer = connection.part(VirtualPointer)
            with _modifiers(connection, modifiers):
                for axis, notches in ((_VERTICAL, dy), (_HORIZONTAL, dx)):
                    for _ in range(abs(notches)):
                        pointer.turn(axis, 1 if notches > 0 else -1)
            connection.wire.roundtrip()

        await self._connection.run(work)

    def _go(self, connection: Connection, to: Point) -> None:
        outputs = connection.part(Outputs)
        layout = outputs.layout()
        if not any(output.bounds.contains(to) for output in outputs.all):
            raise InvalidRequest("The point is not on a display.", desktop=layout.to_wire())
        pointer = connection.part(VirtualPointer)
        pointer.move(int(to.x) - layout.x, int(to.y) - layout.y, layout.width, layout.height)
        connection.wire.roundtrip()
        self._last = to


@contextmanager
def _modifiers(connection: Connection, modifiers: Sequence[Modifier]) -> Iterator[None]:
    if not modifiers:
        yield
        return
    with connection.part(VirtualKeyboard).held(list(modifiers)):
        yield


def steps(start: Point, end: Point) -> list[Point]:
    dx, dy = end.x - start.x, end.y - start.y
    count = max(2, int(max(abs(dx), abs(dy)) // _STEP))
    return [Point(x=start.x + dx * step / count, y=start.y + dy * step / count) for step in range(1, count + 1)]


def _now() -> int:
    return int(time.monotonic() * 1000) & 0xFFFFFFFF
