"""SimulatedComputer: the desktop facets over one World."""

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.absent import Absent
from computer_linker.computer.manifest import FacetName
from computer_linker.computer.simulated.act import SimulatedKeyboard, SimulatedPointer
from computer_linker.computer.simulated.arrange import (
    SimulatedApps,
    SimulatedClipboard,
    SimulatedFacts,
    SimulatedNotifications,
    SimulatedWindows,
)
from computer_linker.computer.simulated.files import SimulatedFiles
from computer_linker.computer.simulated.see import SimulatedScreen
from computer_linker.computer.simulated.world import World

_NOT_SIMULATED: tuple[FacetName, ...] = ("processes", "accessibility")


class SimulatedComputer(Computer):
    """A desktop in memory. `world` is its state, for arranging a scene and for reading what came of it."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__()
        self.world = world or World()
        for facet in _NOT_SIMULATED:
            self.provide(facet, Absent(facet, f"A simulated computer has no {facet}."), backend="")
        self.provide("files", SimulatedFiles(), backend="simulated")
        self.provide("screen", SimulatedScreen(self.world), backend="simulated")
        self.provide("pointer", SimulatedPointer(self.world), backend="simulated")
        self.provide("keyboard", SimulatedKeyboard(self.world), backend="simulated")
        self.provide("windows", SimulatedWindows(self.world), backend="simulated")
        self.provide("apps", SimulatedApps(self.world), backend="simulated")
        self.provide("clipboard", SimulatedClipboard(self.world), backend="simulated")
        self.provide("notifications", SimulatedNotifications(self.world), backend="simulated")
        self.provide("facts", SimulatedFacts(self.world), backend="simulated")
