"""Pointer: moving, clicking, dragging and scrolling in desktop coordinates."""

from collections.abc import Sequence
from typing import Literal, Protocol

from computer_linker.model.base import Model
from computer_linker.model.geometry import Point

Button = Literal["left", "middle", "right", "back", "forward"]
Modifier = Literal["ctrl", "alt", "shift", "super"]


class PointerEvent(Model):
    """One act of the pointer as a value, for Computer.point."""

    action: Literal["move", "click", "drag", "scroll"]
    at: Point
    to: Point | None = None
    """Where a drag ends."""
    button: Button = "left"
    count: int = 1
    modifiers: list[Modifier] = []
    dx: int = 0
    dy: int = 0


class Pointer(Protocol):
    """The pointer of a desktop. Every button and key is released again, also after an error."""

    async def position(self) -> Point:
        """Where the pointer is."""
        ...

    async def move(self, to: Point) -> None:
        """Move the pointer without pressing anything."""
        ...

    async def click(
        self, at: Point, *, button: Button = "left", count: int = 1, modifiers: Sequence[Modifier] = ()
    ) -> None:
        """Move there, then press and release `count` times with the modifiers held."""
        ...

    async def drag(self, path: Sequence[Point], *, button: Button = "left", modifiers: Sequence[Modifier] = ()) -> None:
        """Press at the first point, move through the others, release at the last."""
        ...

    async def scroll(self, at: Point, *, dx: int = 0, dy: int = 0, modifiers: Sequence[Modifier] = ()) -> None:
        """Turn the wheel there: whole notches, positive is right and down."""
        ...
