"""The macOS facets of a computer. Unproven: written against Apple's interfaces, never yet run on a Mac."""

import platform
from collections.abc import AsyncIterator

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.absent import Absent
from computer_linker.computer.facets.facts import Environment, InputSeen
from computer_linker.computer.local.macos.clipboard import MacClipboard
from computer_linker.computer.local.macos.input import MacKeyboard, MacPointer
from computer_linker.computer.local.macos.screen import MacScreen
from computer_linker.computer.local.macos.windows import MacWindows
from computer_linker.errors import UnsupportedPlatform


class MacFacts:
    """Facts of a macOS session."""

    async def environment(self) -> Environment:
        """The system's release."""
        return Environment(
            system="macos",
            release=platform.mac_ver()[0],
            architecture=platform.machine(),
            session="quartz",
            desktop="aqua",
        )

    async def lock_screen(self) -> None:
        """Not offered."""
        raise UnsupportedPlatform("macOS offers programs no way to lock the screen.")

    def input(self) -> AsyncIterator[InputSeen]:
        """Not offered."""
        raise UnsupportedPlatform("Input is not told on macOS yet.")


def provide_macos(computer: Computer) -> None:
    """Put the macOS facets in place; each says `is_proven: false` until its tests have run on a Mac."""
    computer.provide("screen", MacScreen(), backend="quartz", is_proven=False)
    computer.provide("pointer", MacPointer(), backend="quartz", is_proven=False)
    computer.provide("keyboard", MacKeyboard(), backend="quartz", is_proven=False)
    computer.provide("windows", MacWindows(), backend="quartz", is_proven=False)
    computer.provide("clipboard", MacClipboard(), backend="appkit", is_proven=False)
    computer.provide("facts", MacFacts(), backend="macos", is_proven=False)
    for facet in ("apps", "accessibility", "notifications"):
        computer.provide(facet, Absent(facet, f"On macOS, {facet} are not built yet."), backend="")
