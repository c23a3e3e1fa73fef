"""Processes: start one exactly as told, watch it, and end it with everything it started."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

SignalName = Literal["term", "int", "kill", "hup", "quit", "usr1", "usr2"]
FIRST_KEPT_FD = 10
"""`Launch.fds` appear in the child as 10, 11, 12 …, so that an argv can name them."""
STAGED_PATH = "/staged"
"""Where a launch with a staged root finds it."""
GATE_FD = 9
"""Where a launch with `gate="argv"` finds its gate: it must wait until a byte can be read there."""


@dataclass(frozen=True, slots=True)
class PtySize:
    cols: int = 120
    rows: int = 40


@dataclass(frozen=True, slots=True)
class KernelRules:
    """What the kernel takes away from a child before its program starts (Landlock and seccomp on Linux)."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    root_fds: tuple[int, ...] = ()
    """Indexes into `Launch.fds` of folders that may be written."""
    read_root_fds: tuple[int, ...] = ()
    confine_files: bool = False
    cut_network: bool = False
    confine_signals: bool = False


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What one command, with all it starts, may use. None is the system's default."""

    processes: int | None = None
    memory_bytes: int | None = None
    file_bytes: int = 16 << 30
    """The largest file it may write."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One entry of a staged root.

    `system`: the machine's own folder of this path, read-only. `shown`: what the descriptor `index` holds. `room`: an empty
    folder in memory. `devices`: the devices every program may use. `link`: a link to `target`. `held`, `read_only`, `hidden`:
    a name inside what is shown, closed.
    """

    kind: Literal["system", "shown", "room", "devices", "link", "held", "read_only", "hidden"]
    at: str
    """Its absolute path inside."""
    index: int = 0
    read_only: bool = False
    target: str = ""
    device: int = 0
    inode: int = 0
    """A closed name must have this number still; 0 for one that no command can replace."""


@dataclass(frozen=True, slots=True)
class Staging:
    """A root built for the program before it starts, from held descriptors; a sandbox program finds it at STAGED_PATH."""

    mounts: tuple[Mount, ...]
    """In the order they are made: what lies deeper comes later."""
    fds: tuple[int, ...]
    room_bytes: int
    """How much memory all folders of the kind `room` may take together."""


class NamesChanged(Exception):
    """A name of a staged root is not what was seen there; nothing was started."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One program to start. `argv[0]` is the absolute file; nothing is looked up or expanded."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd_fd: int | None = None
    stdin: Literal["null", "pipe"] = "null"
    pty: PtySize | None = None
    fds: tuple[int, ...] = ()
    """Descriptors the child keeps, as FIRST_KEPT_FD and up."""
    gate: Literal["self", "argv"] = "self"
    """Who waits for `Child.go()`: the launcher itself, or the program in argv (it reads GATE_FD)."""
    wrapped: bool = False
    """True when argv is a sandbox program: a gentle stop goes past it to what it runs."""
    kernel: KernelRules = field(default_factory=KernelRules)
    staging: Staging | None = None
    is_tunnel: bool = False
    """True for the service's own tunnel program: it may come in by the tunnel's port, as no command may."""
    ahead: "Ahead | None" = None
    """The process that was set to work ahead of this launch."""
    client: str = ""
    """The principal it runs for: all of one client's processes share one allowance. Empty for the service itself."""
    limits: ProcessLimits = field(default_factory=ProcessLimits)


class Ahead(Protocol):
    """A process that syncs a file now and takes one launch afterwards; if the file cannot be synced, none."""

    def give_back(self) -> None:
        """There is no launch for it after all."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code, or 128 and the number of the signal that ended it."""

    exit_code: int
    signal: str | None = None
    reason: str | None = None
    """Why the program could not be started at all."""
    reached: tuple[tuple[str, int], ...] = ()
    """Limits it ran into, `processes` or `memory`, each with its value."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and all it started use now."""

    pids: int
    cpu_s: float
    memory_bytes: int
    ports: tuple[int, ...]


class Child(Protocol):
    """A started process, held by the service. Descriptors are non-blocking and belong to the caller."""

    pid: int
    stdin: int | None
    stdout: int
    stderr: int | None
    """None on a pty, where both come through `stdout`."""

    def go(self) -> None:
        """Let the program start; until then nothing of it has run."""
        ...

    async def wait(self) -> Ended:
        """Return once the process has ended and been reaped."""
        ...

    def when_ended(self, call: Callable[[Ended], None]) -> None:
        """Call back, on the event loop, once the process has ended."""
        ...

    def signal(self, name: SignalName) -> None:
        """Send a signal to the process's whole group (past a sandbox program); nothing when it has ended."""
        ...

    def kill(self) -> None:
        """End the process and everything it started, at once."""
        ...

    def usage(self) -> Usage | None:
        """What it uses now, where the system can tell."""
        ...

    def resize(self, size: PtySize) -> None:
        """Tell a pty its size."""
        ...


class Processes(Protocol):
    """Starts processes on one machine."""

    async def spawn(self, launch: Launch) -> Child:
        """Start a process; it waits at its gate until `go()`. Raises NamesChanged when its root has to be planned anew."""
        ...

    async def aclose(self) -> None:
        """End every process that was started here."""
        ...


@runtime_checkable
class SyncsAhead(Protocol):
    """Processes that can wait for the disk before they become a program, so that nobody else has to."""

    def sync_ahead(self, fd: int, client: str = "") -> Ahead | None:
        """Set a process of this client to work at once; None when none waits for work."""
        ...
