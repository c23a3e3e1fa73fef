"""A simulated desktop in memory, for tests and demonstrations: its state can be read back."""

from computer_linker.computer.simulated.computer import SimulatedComputer
from computer_linker.computer.simulated.world import SimulatedControl, SimulatedWindow, World

__all__ = ["SimulatedComputer", "SimulatedControl", "SimulatedWindow", "World"]
