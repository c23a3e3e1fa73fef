"""The Windows facets of a computer. Tested under wine; on Windows itself they are unproven."""

import platform
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from anyio import to_thread

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
from computer_linker.system.windows import processes as system

_SINCE_1601 = 11_644_473_600
"""Seconds from there to 1970."""


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
        """Every process that Windows lists and that this user may ask about."""
        return await to_thread.run_sync(_all_processes)

    async def lock_screen(self) -> None:
        """Lock the session."""
        if not user32().LockWorkStation():
            raise ExecutionFailed("Windows did not lock the session.")

    def input(self) -> AsyncIterator[InputSeen]:
        """Not offered."""
        raise UnsupportedPlatform("Input is not told on Windows yet.")


def _all_processes() -> list[Process]:
    """The processes by pid; one that ends meanwhile is left out."""
    return [_shown(pid, found) for pid in system.all_pids() if (found := system.process(pid)) is not None]


def _shown(pid: int, found: system.ProcessFacts) -> Process:
    started = datetime.fromtimestamp(found.started / 1e7 - _SINCE_1601, UTC)
    return Process(
        pid=pid,
        parent=found.parent,
        name=found.name,
        started_at=started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        is_own=found.is_own,
        memory_bytes=found.memory_bytes,
        cpu_seconds=found.cpu_seconds,
    )


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
