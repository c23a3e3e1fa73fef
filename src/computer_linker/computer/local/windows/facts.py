"""What this Windows session is, and locking it."""

import platform
from collections.abc import AsyncIterator

from computer_linker.computer.facets.facts import Environment, InputSeen
from computer_linker.computer.local.windows.api import user32
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

    async def lock_screen(self) -> None:
        """Lock the session."""
        if not user32().LockWorkStation():
            raise ExecutionFailed("Windows did not lock the session.")

    def input(self) -> AsyncIterator[InputSeen]:
        """Not offered."""
        raise UnsupportedPlatform("Input is not told on Windows yet.")
