"""Values of the sandbox: a probed boundary, a requested confinement, and the plan to spawn in it."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from computer_linker.computer.facets.processes import (
    Child,
    Confined,
    InnerNetwork,
    KernelRules,
    ProcessLimits,
    StagedText,
    Staging,
)
from computer_linker.model.paths import PathRules
from computer_linker.policy.engine import ProcessRights
from computer_linker.vault.mask import Mask

Kind = Literal["bubblewrap", "landlock", "seatbelt", "none"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """What the kernel refused during a probe. `detail` describes what was tried, or why there is no boundary."""

    kind: Kind
    files: bool = False
    """Nothing outside the roots and the system's own programs can be read or written."""
    network: bool = False
    """With `network: false` no connection leaves, not even to this machine."""
    processes: bool = False
    """The service and other processes cannot be seen or signalled."""
    protected: bool = False
    """Protected names that exist cannot be written, renamed or removed."""
    detail: str = ""

    @property
    def holds(self) -> bool:
        return self.kind != "none" and self.files

    def named(self, *, network_cut: bool) -> str:
        """The boundary as results and the history name it, such as `bubblewrap: files, network, processes`."""
        if self.kind == "none":
            return "none"
        parts = {
            "files": self.files,
            "network": self.network and network_cut,
            "processes": self.processes,
            "protected names": self.protected,
        }
        return f"{self.kind}: {', '.join(name for name, holds in parts.items() if holds) or 'nothing'}"


NO_BOUNDARY = Boundary("none")


@dataclass(frozen=True, slots=True)
class Closed:
    """One name below a folder that a command must not write, see or rename, with its identity at the scan."""

    parts: tuple[str, ...]
    """Path components below the folder."""
    how: Literal["held", "read_only", "hidden"]
    """`held`: writable, but it cannot be renamed or removed. `read_only`: held, and nothing in it can change. `hidden`: held, and
    neither its contents nor its names can be read."""
    is_folder: bool
    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Store:
    """The held folder that takes the changes of a viewed one: `upper` and `work` of an overlay, or a whole copy in `upper`."""

    fd: int
    is_copy: bool = False
    only: tuple[str, ...] = ()
    """The one folder in it that can be written, by its path components; all of it without."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder held by descriptor, and where it appears to the command."""

    fd: int
    path: str
    rules: PathRules = field(default_factory=PathRules)
    above: tuple[str, ...] = ()
    """Path components from the scope's root down to here; `rules` match paths from the root."""
    view: Store | None = None
    """Takes all changes instead of this folder."""
    only_read: bool = False
    """Of `Confinement.own`: the program may not write it."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a command may touch. Everything else is inaccessible, except the system's programs."""

    writable: tuple[Folder, ...] = ()
    readable: tuple[Folder, ...] = ()
    programs: tuple[str, ...] = ()
    """Read-only places of the program itself, such as the folder of its interpreter."""
    hidden: tuple[str, ...] = ()
    """Folders never shown even inside a root: the service's own state."""
    emptied: tuple[str, ...] = ()
    """Folders that are empty but for the program's own things in them (bubblewrap only)."""
    own: tuple[Folder, ...] = ()
    """The program's own folders, such as its login; mounted over everything that closes names."""
    nests: bool = False
    """The program creates its own sandbox inside this one."""
    network: bool = False
    hosts: InnerNetwork | None = None
    """The namespace in which a gate listens for the hosts of a list (bubblewrap only)."""
    files: tuple[StagedText, ...] = ()
    """Files of the sandbox's own (bubblewrap only)."""
    cut_unix_sockets: bool = False
    """No UNIX sockets: it could meet a program whose sandbox closes other names, and each would open them for the other."""
    is_bare: bool = False
    """Of this machine it sees programs and libraries alone: no settings, and no tool folders of the home (bubblewrap only)."""
    only_reads: bool = False
    """It opens no file for writing (bubblewrap only)."""
    cwd: str = "/"
    """Where the command starts, as a path inside."""
    cwd_fd: int | None = None
    """The same folder held by descriptor, for boundaries that change no paths."""


class Watch(Protocol):
    """Removes the protected names that a process creates, and closes names again that were replaced."""

    command: str
    """The operation or process that the removed names are stored under."""
    program: Confined | None
    """The process, once it is started in a root in which names can be closed."""

    @property
    def refused(self) -> list[str]:
        """A sentence for each removed name."""
        ...

    async def settle(self) -> list[str]:
        """Scan once more after the process has ended. Returns a sentence for each removed name."""
        ...

    def end(self, then: Callable[[], None]) -> None:
        """Settle in the background; `then` is called afterwards."""
        ...


class NetworkGate(Protocol):
    """Judges the connections of a process whose scope lists its hosts."""

    operation: str | None
    """The operation that the process belongs to."""

    def warnings(self) -> list[str]:
        """A sentence for each host that was refused so far."""
        ...


@dataclass(slots=True)
class SpawnPlan:
    """How to spawn inside the boundary. Call `sent` once it is spawned, and `release` once the process has ended."""

    argv: tuple[str, ...]
    fds: tuple[int, ...] = ()
    cwd_fd: int | None = None
    gate: Literal["self", "argv"] = "self"
    wrapped: bool = False
    kernel: KernelRules = field(default_factory=KernelRules)
    boundary: str = "none"
    client: str = ""
    """The principal it runs for."""
    rights: ProcessRights | None = None
    """It is ended once the owner takes one of these; None for the service's own programs."""
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    warnings: list[str] = field(default_factory=list)
    is_partial: bool = False
    """True where a root holds more than was scanned: secrets deep inside it are not closed."""
    staging: Staging | None = None
    """The root to build for the process from held descriptors."""
    rescan: Callable[[], Awaitable[None]] | None = None
    """Plan the root again, where a name in it changed after planning."""
    closes: list[int] = field(default_factory=list)
    """Descriptors to close once the process has its own."""
    releases: list[Callable[[], None]] = field(default_factory=list)
    planting: Watch | None = None
    """Removes the protected names that the process creates."""
    guard: Callable[[Child], None] | None = None
    """Called with the process once it is spawned, to end it when it exceeds a limit that the kernel does not enforce."""
    network_gate: NetworkGate | None = None
    mask: Mask | None = None
    """Replaces stored secrets in what it prints."""

    def belongs_to(self, operation: str) -> None:
        """Name the operation that runs it: what it plants and what it connects to is recorded under that."""
        if self.planting is not None:
            self.planting.command = operation
        if self.network_gate is not None:
            self.network_gate.operation = operation

    def gate_warnings(self) -> list[str]:
        """A sentence for each host that was refused so far."""
        return [] if self.network_gate is None else self.network_gate.warnings()

    def sent(self) -> None:
        """Close our descriptors: the process holds its own now."""
        closes, self.closes = self.closes, []
        for fd in closes:
            os.close(fd)

    def release(self, then: Callable[[], None] = lambda: None) -> None:
        """Undo what the plan put in place; safe to call twice. `then` is called once planted names were removed."""
        self.sent()
        releases, self.releases = self.releases, []
        for undo in releases:
            undo()
        planting, self.planting = self.planting, None
        if planting is None:
            then()
        else:
            planting.end(then)

    async def settle_planting(self) -> list[str]:
        """Remove what the ended process planted. Returns a sentence for each name."""
        refused = [] if self.planting is None else await self.planting.settle()
        self.planting = None
        return refused
