"""Processes as they travel: what a launch may say to another machine, and every call about a process that runs there."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

from computer_linker.computer.facets.processes import Ended, PtySize, SignalName, Usage

OutputName = Literal["stdout", "stderr"]
FED = 65_536
"""What one `feed` carries at most."""
RESUME_S = 20.0
"""How long a caller tries to find a process again after its link broke."""


@dataclass(frozen=True, slots=True)
class FarLaunch:
    """A program to start there: what can be judged by its words. Descriptors and kernel rules are the other machine's own."""

    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: Literal["null", "pipe"] = "null"
    pty: PtySize | None = None


@dataclass(frozen=True, slots=True)
class Spawned:
    """A process that waits at its gate there, under a handle that only its caller can use."""

    process: str
    pid: int
    missing: str | None = None
    """Why there is none: the program is not there. Everything else is refused."""


class ProcessesThere(Protocol):
    """The processes of a machine as a paired one calls them."""

    async def spawn(self, launch: FarLaunch) -> Spawned:
        """Judge, confine and start a program; it waits at its gate."""
        ...

    async def go(self, process: str) -> None:
        """Open the gate. What then runs was decided, and recorded, by `spawn`."""
        ...

    async def feed(self, process: str, at: int, data: bytes, is_last: bool = False) -> int:
        """Give it input, `at` so many bytes from the beginning; how much of it is taken, now or when it came before."""
        ...

    async def signal(self, process: str, name: SignalName) -> None: ...

    async def kill(self, process: str) -> None: ...

    async def hang_up(self, process: str, name: OutputName) -> None:
        """Read no more of an output: who goes on writing to it is told by the system, as when a pipe is closed."""
        ...

    async def resize(self, process: str, size: PtySize) -> None: ...

    async def usage(self, process: str) -> Usage | None: ...

    def output(self, process: str, name: OutputName, have: int) -> AsyncIterator[bytes]:
        """What it prints, from byte `have` on, no faster than it is taken."""
        ...

    def ending(self, process: str) -> AsyncIterator[Ended]:
        """One item, once it has ended."""
        ...
