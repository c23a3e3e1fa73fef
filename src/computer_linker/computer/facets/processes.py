"""Processes: starting a program exactly as specified, watching it, and ending it with all its descendants."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from computer_linker.model.base import Model
from computer_linker.model.network import PROXY_PORT

SignalName = Literal["term", "int", "kill", "hup", "quit", "usr1", "usr2"]
FIRST_KEPT_FD = 10
"""`Launch.fds` appear in the child as 10, 11, 12 …, so that an argv can name them."""
STAGED_PATH = "/staged"
"""The path of the staged root in a launch that has one."""
GATE_FD = 9
"""The gate's descriptor in a launch with `gate="argv"`: the program must wait until a byte can be read there."""

FILTER_FD = 8
"""The descriptor of the seccomp program that a sandbox program has to apply to what it starts, where there is one."""


RESOLVER, PROXY = ("127.0.0.1", 53), ("127.0.0.1", PROXY_PORT)
"""Where the resolver and the proxy listen in a network of a command's own."""
NAMED_RANGE = ("198.18.0.0", "255.254.0.0")
"""Addresses and netmask of that network that stand for names: a range that is routed nowhere (RFC 2544)."""


@dataclass(frozen=True, slots=True)
class PtySize:
    cols: int = 120
    rows: int = 40


@dataclass(frozen=True, slots=True)
class KernelRules:
    """Kernel restrictions of a child, applied before its program starts (Landlock and seccomp on Linux)."""

    read: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    """Folders that may be listed recursively, without reading files."""
    write: tuple[str, ...] = ()
    root_fds: tuple[int, ...] = ()
    """Indexes into `Launch.fds` of folders that may be written."""
    read_root_fds: tuple[int, ...] = ()
    confine_files: bool = False
    cut_network: bool = False
    confine_signals: bool = False
    confine_namespaces: bool = False
    """No user namespace inside the sandbox. Like the next two, applied by a sandbox program, which reads it from FILTER_FD."""
    cut_unix_sockets: bool = False
    """No UNIX sockets, by which programs of different sandboxes could meet; socketpair works."""

    confine_sockets: bool = False
    """Only sockets that a network namespace separates from the machine's."""
    confine_writes: bool = False
    """No file is opened for writing or changed otherwise, not even through a descriptor that it was given."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Resource limits of one command with all its descendants. None is the system's default."""

    processes: int | None = None
    memory_bytes: int | None = None
    file_bytes: int = 16 << 30
    """The largest file it may write."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One entry of a staged root.

    `system`: the machine's own folder of this path, read-only. `shown`: what the descriptor `index` holds. `room`: an empty
    folder in memory. `devices`: the devices every program may use. `link`: a link to `target`. `file`: a file with the text
    `target`. `view`: the folder `index` holds, with all changes going to the folder `store` holds, in which only `target` is
    writable where that is given. `copied`: the same with the copy of the folder that `store` holds. `held`, `read_only`,
    `hidden`: a name inside what is shown, closed.
    """

    kind: Literal["system", "shown", "view", "copied", "room", "devices", "link", "file", "held", "read_only", "hidden"]
    at: str
    """Its absolute path inside."""
    index: int = 0
    store: int = 0
    read_only: bool = False
    target: str = ""
    device: int = 0
    inode: int = 0
    """The inode a closed name must still have; 0 for one that no command can replace."""


@dataclass(frozen=True, slots=True)
class StagedText:
    """A read-only file of a staged root, each character a byte."""

    at: str
    text: str


@dataclass(frozen=True, slots=True)
class InnerNetwork:
    """A network namespace with nothing but loopback, in which the service listens."""

    ports: tuple[int, ...]
    addresses: tuple[str, ...]
    """Addresses that are its own beside the usual ones."""
    opened: Callable[[list[int]], None]
    """Takes the sockets before the program starts: the resolver's, the proxy's listener, and a listener for each port."""


@dataclass(frozen=True, slots=True)
class Staging:
    """A staged root, built from held descriptors before the program starts; mounted at STAGED_PATH."""

    mounts: tuple[Mount, ...]
    """In mount order: deeper paths come later."""
    fds: tuple[int, ...]
    room_bytes: int
    """The total memory limit of all `room` folders."""
    other_ids: int | None = None
    """The first of the host's ids that stand for the ids of other users inside; None maps the caller's id alone."""
    network: InnerNetwork | None = None


class NamesChanged(Exception):
    """A name of a staged root changed since it was inspected; nothing was started."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One program to start. `argv[0]` is an absolute path; nothing is looked up or expanded."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd_fd: int | None = None
    stdin: Literal["null", "pipe"] = "null"
    stdin_fd: int | None = None
    """An open file that it reads as its input instead; it stays the caller's. Local machines only."""
    pty: PtySize | None = None
    fds: tuple[int, ...] = ()
    """Descriptors the child inherits, as FIRST_KEPT_FD and up."""
    gate: Literal["self", "argv"] = "self"
    """Who waits for `Child.go()`: the launcher itself, or the program in argv (it reads GATE_FD)."""
    wrapped: bool = False
    """True when argv is a sandbox program: a graceful stop signals the program inside it instead."""
    kernel: KernelRules = field(default_factory=KernelRules)
    staging: Staging | None = None
    is_tunnel: bool = False
    """True for the service's own tunnel program: it may connect to the tunnel's port, unlike a command."""
    client: str = ""
    """The principal it runs for: all of one client's processes share its limits. Empty for the service itself."""
    limits: ProcessLimits = field(default_factory=ProcessLimits)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code, or 128 and the number of the signal that ended it."""

    exit_code: int
    signal: str | None = None
    reason: str | None = None
    """Why the program could not be started at all."""
    reached: tuple[tuple[str, int], ...] = ()
    """Limits it reached, `processes` or `memory`, each with its value."""


class CompletedCommand(Model):
    """A program that ran to its end, and the start of what it printed."""

    argv: list[str]
    exit_code: int
    signal: str | None = None
    timed_out: bool = False
    stdout: str
    stderr: str
    truncated: bool = False


class Process(Model):
    """One process of the computer, without its arguments: those may hold secrets."""

    pid: int
    parent: int
    name: str
    """Of its program."""
    started_at: str
    is_own: bool
    """It runs as the same user as this service."""
    memory_bytes: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Usage:
    """The current resource usage of a process and its descendants."""

    pids: int
    cpu_s: float
    memory_bytes: int
    ports: tuple[int, ...]


Echo = Literal["none", "terminal", "program"]
"""Who echoes typed text: none, the terminal itself, or perhaps a program that reads key by key."""


class Child(Protocol):
    """A started process, held by the service. Descriptors are non-blocking and belong to the caller."""

    pid: int
    stdin: int | None
    stdout: int
    stderr: int | None
    """None on a pty, where both arrive through `stdout`."""

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
        """Send a signal to the process group (except a sandbox program); no effect when it has ended."""
        ...

    def kill(self) -> None:
        """Kill the process and all its descendants at once."""
        ...

    def usage(self) -> Usage | None:
        """Its current resource usage, where the system reports it."""
        ...

    def resize(self, size: PtySize) -> None:
        """Set the size of a pty."""
        ...

    def echo(self) -> Echo:
        """Who echoes text that is typed now."""
        ...

    def waits_for_input(self) -> bool | None:
        """True while the program is blocked reading its input; None where the system does not show it."""
        ...


Covering = Literal["closed", "was closed", "open"]


@runtime_checkable
class Confined(Protocol):
    """A started process in a staged root, in which names can be closed while it runs."""

    async def cover(self, name: Mount) -> Covering:
        """Close a name again that was replaced on the disk."""
        ...


@runtime_checkable
class Measured(Protocol):
    """A started process whose writes the system counts."""

    def written(self) -> tuple[int, int]:
        """The bytes that it and its descendants wrote to disks, and to files and streams of any kind."""
        ...

    def end_for(self, limit: str, value: int) -> None:
        """Kill it; its end names this limit as reached."""
        ...

    def when_ended(self, call: Callable[[Ended], None]) -> None: ...


class Processes(Protocol):
    """Starts processes on one machine."""

    async def spawn(self, launch: Launch) -> Child:
        """Start a process; it waits at its gate until `go()`. Raises NamesChanged when its root must be planned again."""
        ...

    async def aclose(self) -> None:
        """End every process that was started here."""
        ...
