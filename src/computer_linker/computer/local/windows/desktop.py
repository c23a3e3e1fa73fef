"""The Windows facets of a computer. Tested under wine; on Windows itself they are unproven."""

import platform
from collections.abc import AsyncIterator

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.facts import Environment, InputSeen
from computer_linker.computer.facets.processes import Process
from computer_linker.computer.local.windows.api import user32
from computer_linker.computer.local.windows.clipboard import WindowsClipboard
from computer_linker.computer.local.windows.input import WindowsKeyboard, WindowsPointer
from computer_linker.computer.local.windows.screen import WindowsScreen
from computer_linker.computer.local.windows.windows import Win32Windows
from computer_linker.computer.manifest import Absent
from computer_linker.errors import ExecutionFailed, UnsupportedPlatform


class WindowsFacts:
    """Facts of a Windows session."""

    async def environment(self) -> Environment:
        """The system's release."""
        return Environment(
            system="windows",
            release=platform.version(),
            architecture=platform.machine(),
            session="win32",
            desktop="windows",
        )

    async def processes(self) -> list[Process]:
        """Not offered."""
        raise UnsupportedPlatform("The list of processes is not built on Windows yet.")

    async def lock_screen(self) -> None:
        """Lock the session."""
        if not user32().LockWorkStation():
            raise ExecutionFailed("Windows did not lock the session.")

    def input(self) -> AsyncIterator[InputSeen]:
        """Not offered."""
        raise UnsupportedPlatform("Input is not told on Windows yet.")


def provide_windows(computer: Computer) -> None:
    """Provide the Windows facets; each reports `is_proven: false` until its tests have run on Windows."""
    computer.provide("screen", WindowsScreen(), backend="gdi", is_proven=False)
    computer.provide("pointer", WindowsPointer(), backend="win32", is_proven=False)
    computer.provide("keyboard", WindowsKeyboard(), backend="win32", is_proven=False)
    computer.provide("windows", Win32Windows(), backend="win32", is_proven=False)
    computer.provide("clipboard", WindowsClipboard(), backend="win32", is_proven=False)
    computer.provide("facts", WindowsFacts(), backend="win32", is_proven=False)
    for facet in ("apps", "accessibility", "notifications"):
        computer.provide(facet, Absent(facet, f"On Windows, {facet} are not built yet."), backend="")
