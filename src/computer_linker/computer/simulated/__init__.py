"""A whole desktop in memory, for tests and demonstrations: what is done to it can be read back from it."""

from computer_linker.computer.simulated.computer import SimulatedComputer
from computer_linker.computer.simulated.world import SimulatedControl, SimulatedWindow, World

__all__ = ["SimulatedComputer", "SimulatedControl", "SimulatedWindow", "World"]
