"""Facts of a macOS session, and its processes. Run on a stand-in for macOS only (`make test-macos-shim`)."""

import os
import platform
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from anyio import to_thread

from computer_linker.computer.facets.facts import Environment, InputSeen
from computer_linker.computer.facets.processes import Process
from computer_linker.errors import UnsupportedPlatform
from computer_linker.model.geometry import safe_title
from computer_linker.system import macos as system


class MacFacts:
    """Facts of a macOS session; they need no extra package."""

    async def environment(self) -> Environment:
        """The system's release."""
        return Environment(
            system="macos",
            release=platform.mac_ver()[0],
            architecture=platform.machine(),
            session="quartz",
            desktop="aqua",
            locale=(os.environ.get("LC_ALL") or os.environ.get("LANG", ""))[:64],
        )

    async def processes(self) -> list[Process]:
        """Every process that libproc lists."""
        return await to_thread.run_sync(_all_processes)

    async def lock_screen(self) -> None:
        """Not offered."""
        raise UnsupportedPlatform("macOS offers programs no way to lock the screen.")

    def input(self) -> AsyncIterator[InputSeen]:
        """Not offered."""
        raise UnsupportedPlatform("Watching for a person's input is not built on macOS yet.")


def _all_processes() -> list[Process]:
    """The processes by pid; one that ends meanwhile is left out."""
    return [_shown(pid, found) for pid in system.all_pids() if (found := system.process(pid)) is not None]


def _shown(pid: int, found: system.ProcessFacts) -> Process:
    started = datetime.fromtimestamp(found.started / 1_000_000, UTC)
    return Process(
        pid=pid,
        parent=found.parent,
        name=safe_title(found.name),
        started_at=started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        is_own=found.uid == os.geteuid(),
        memory_bytes=found.memory_bytes,
        cpu_seconds=found.cpu_seconds,
    )
