"""Pointer and keyboard of a simulated desktop; events are logged by the window they reach."""

import time
from collections.abc import Sequence

import anyio.lowlevel

from computer_linker.computer.facets.facts import InputSeen
from computer_linker.computer.facets.keyboard import key_name
from computer_linker.computer.facets.pointer import Button, Modifier
from computer_linker.computer.simulated.world import SimulatedWindow, World
from computer_linker.errors import InvalidRequest, UnsupportedPlatform
from computer_linker.model.geometry import Point


class SimulatedPointer:
    """Pointer of a World."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def position(self) -> Point:
        return self._world.pointer

    async def move(self, to: Point) -> None:
        self._moved(to)

    async def click(
        self, at: Point, *, button: Button = "left", count: int = 1, modifiers: Sequence[Modifier] = ()
    ) -> None:
        self._moved(at)
        window = self._world.at(at)
        if window is not None:
            self._world.raise_to_top(window)
            control = window.control_at(at)
            for _ in range(count):
                window.log.append({"event": "click", "button": button, "modifiers": list(modifiers), **_in(window, at)})
                if control is not None and button == "left" and window.press(control):
                    self._world.said(window, "object:state-changed:pressed", detail=1)
                await _between()
        self._world.happened(_seen("pointer", "pressed"))

    async def drag(self, path: Sequence[Point], *, button: Button = "left", modifiers: Sequence[Modifier] = ()) -> None:
        for point in path:
            self._moved(point)
        window = self._world.at(path[0])
        if window is not None:
            ends = {"from": _in(window, path[0]), "to": _in(window, path[-1])}
            window.log.append({"event": "drag", "button": button, "modifiers": list(modifiers), **ends})

    async def scroll(self, at: Point, *, dx: int = 0, dy: int = 0, modifiers: Sequence[Modifier] = ()) -> None:
        self._moved(at)
        window = self._world.at(at)
        if window is not None:
            window.log.append({"event": "scroll", "dx": dx, "dy": dy, "modifiers": list(modifiers)})

    def _moved(self, to: Point) -> None:
        area = self._world.area()
        if not area.contains(to):
            raise InvalidRequest("The point is not on a display.", desktop=area.to_wire())
        self._world.pointer = to
        self._world.happened(_seen("pointer", "moved"))


class SimulatedKeyboard:
    """Keyboard of a World, with a US layout."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def press(self, keys: Sequence[str], *, count: int = 1) -> None:
        names = [key_name(key) for key in keys]
        window = self._world.focused()
        for _ in range(count):
            self._world.happened(_seen("keyboard", "pressed"))
            if window is not None:
                window.log.append({"event": "press", "keys": names})
                self._apply(window, names)
            await _between()

    async def can_type(self, text: str) -> bool:
        return all(character == "\n" or " " <= character <= "~" for character in text)

    async def type_text(self, text: str) -> None:
        if not await self.can_type(text):
            raise UnsupportedPlatform("The keyboard layout lacks a character of this text; paste or set it instead.")
        window = self._world.focused()
        for character in text:
            self._world.happened(_seen("keyboard", "pressed"))
            if window is not None:
                window.type(window.typed() + character)
            await _between()
        if window is not None:
            self._changed(window)

    def _changed(self, window: SimulatedWindow) -> None:
        self._world.changed(window.bounds)
        self._world.said(window, "object:text-changed:insert")

    def _apply(self, window: SimulatedWindow, names: list[str]) -> None:
        held = window.typed()
        match names:
            case ["ctrl", "v"]:
                window.type(held + (self._world.clip.text or ""))
            case ["delete"]:
                window.type("")
            case ["enter"]:
                window.type(held + "\n")
            case ["backspace"]:
                window.type(held[:-1])
            case [one] if len(one) == 1:
                window.type(held + one)
            case _:
                return
        self._changed(window)


async def _between() -> None:
    """A cancellation point between two events, as on a real desktop."""
    await anyio.lowlevel.checkpoint()


def _in(window: SimulatedWindow, point: Point) -> dict[str, float]:
    return {"x": point.x - window.bounds.x, "y": point.y - window.bounds.y}


def _seen(device: str, kind: str) -> InputSeen:
    at_ms = int(time.monotonic() * 1000)
    return InputSeen.model_validate({"device": device, "kind": kind, "at_ms": at_ms, "by": "program"})
