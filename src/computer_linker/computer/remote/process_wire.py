"""Wire models of remote processes: the launch, and every call about a process that runs there."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

from computer_linker.computer.facets.processes import Ended, PtySize, SignalName, Usage

OutputName = Literal["stdout", "stderr"]
FED = 65_536
"""The maximum size of one `feed`."""
RESUME_S = 20.0
"""How long a caller tries to reconnect to a process after its link broke."""


@dataclass(frozen=True, slots=True)
class FarLaunch:
    """A program to start there: only what policy can check. Descriptors and kernel rules are the other machine's own."""

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
    """Why there is no process: the program does not exist. Every other failure is an error."""


class ProcessesThere(Protocol):
    """The process calls that a machine serves to a peer."""

    async def spawn(self, launch: FarLaunch) -> Spawned:
        """Check, confine and start a program; it waits at its gate."""
        ...

    async def go(self, process: str) -> None:
        """Open the gate. The program was approved, and audited, by `spawn`."""
        ...

    async def feed(self, process: str, at: int, data: bytes, is_last: bool = False) -> int:
        """Write input at the offset `at`; returns how much is accepted, now or when it was sent before."""
        ...

    async def signal(self, process: str, name: SignalName) -> None: ...

    async def kill(self, process: str) -> None: ...

    async def hang_up(self, process: str, name: OutputName) -> None:
        """Stop reading an output: a program that writes on gets SIGPIPE, as when a pipe is closed."""
        ...

    async def resize(self, process: str, size: PtySize) -> None: ...

    async def usage(self, process: str) -> Usage | None: ...

    def output(self, process: str, name: OutputName, have: int) -> AsyncIterator[bytes]:
        """Its output from byte `have` on, with back-pressure."""
        ...

    def ending(self, process: str) -> AsyncIterator[Ended]:
        """One item, once it has ended."""
        ...
