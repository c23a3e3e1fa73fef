"""SimulatedComputer: the desktop facets over one World."""

from computer_linker.computer.base import Computer
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
from computer_linker.computer.simulated.see import SimulatedScreen
from computer_linker.computer.simulated.world import World


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
