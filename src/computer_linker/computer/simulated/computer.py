"""SimulatedComputer: the desktop facets over one World."""

from collections.abc import AsyncIterator

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.screen import Pixmap
from computer_linker.computer.local.portable.files import LocalFiles
from computer_linker.computer.simulated.act import SimulatedKeyboard, SimulatedPointer
from computer_linker.computer.simulated.arrange import (
    SimulatedApps,
    SimulatedClipboard,
    SimulatedFacts,
    SimulatedNotifications,
    SimulatedWindows,
)
from computer_linker.computer.simulated.controls import SimulatedAccessibility
from computer_linker.computer.simulated.processes import SimulatedProcesses
from computer_linker.computer.simulated.world import World
from computer_linker.errors import Conflict, InvalidRequest
from computer_linker.model.geometry import Display, Rect

_DESKTOP = 0x202020


class SimulatedScreen:
    """Screen of a World: each window is a rectangle of its colour."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def displays(self) -> list[Display]:
        return list(self._world.displays)

    async def capture(self, area: Rect | None = None, *, cursor: bool = False) -> Pixmap:
        whole = self._world.area()
        shown = whole if area is None else area.intersection(whole)
        if shown.is_empty:
            raise InvalidRequest("Nothing of that area is on a display.", desktop=whole.to_wire())
        scale = self._world.displays[0].scale
        painted = [(one.bounds, one.colour) for one in reversed(self._world.windows) if one.is_visible]
        if cursor:
            at = self._world.pointer
            painted.append((Rect(x=int(at.x), y=int(at.y), width=2, height=2), 0xFFFFFF))
        return _painted(shown, scale, painted)

    async def capture_window(self, window_id: str, *, cursor: bool = False) -> Pixmap:
        window = self._world.find(window_id)
        if not window.is_visible:
            raise Conflict("The window is minimized or on another workspace; focus it first.")
        return _painted(window.bounds, self._world.displays[0].scale, [(window.bounds, window.colour)])

    async def changes(self) -> AsyncIterator[list[Rect]]:
        with self._world.watching() as stream:
            async for areas in stream:
                yield areas


def _painted(area: Rect, scale: float, shapes: list[tuple[Rect, int]]) -> Pixmap:
    width, height = max(1, round(area.width * scale)), max(1, round(area.height * scale))
    blank = Pixmap(width, height, width * 4, b"", area)
    pixels = bytearray(_DESKTOP.to_bytes(4, "little") * (width * height))
    for bounds, colour in shapes:
        inside = blank.map.to_image(bounds)
        row = colour.to_bytes(4, "little") * inside.width
        for y in range(inside.y, inside.bottom):
            start = (y * width + inside.x) * 4
            pixels[start : start + len(row)] = row
    return Pixmap(width, height, width * 4, bytes(pixels), area)


class SimulatedComputer(Computer):
    """A desktop in memory. `world` is its state, for setting up a scene and for reading the result.

    Its files are this machine's, beneath the scopes' roots: use scopes of a temporary folder.
    """

    def __init__(self, world: World | None = None) -> None:
        super().__init__()
        self.world = world or World()
        self.provide("files", LocalFiles(), backend="portable")
        self.provide("screen", SimulatedScreen(self.world), backend="simulated")
        self.provide("pointer", SimulatedPointer(self.world), backend="simulated")
        self.provide("keyboard", SimulatedKeyboard(self.world), backend="simulated")
        self.provide("windows", SimulatedWindows(self.world), backend="simulated")
        self.provide("apps", SimulatedApps(self.world), backend="simulated")
        self.provide("clipboard", SimulatedClipboard(self.world), backend="simulated")
        self.provide("notifications", SimulatedNotifications(self.world), backend="simulated")
        self.provide("accessibility", SimulatedAccessibility(self.world), backend="simulated")
        self.provide("processes", SimulatedProcesses(), backend="simulated")
        self.provide("facts", SimulatedFacts(self.world), backend="simulated")
