"""Control groups: limits on processes and memory of a command, a client and all commands together.

Where the machine has the controller, processor time is divided too: equally between clients, and all commands together weigh
less than the service, however many processes and sessions they have.

The service's own group is used where it is delegated to us (cgroup v2, `Delegate=yes` in the unit), otherwise the
superuser's cgroup v1 hierarchies. Groups are created below the service's own group, so that its limits apply too.
Where neither is available, commands are limited by resource limits alone (see launched.py).
"""

import os
import time

from computer_linker.system.proc_files import SIGKILL, children, origin_of, read, send, write

TOP = "/sys/fs/cgroup"
_PREFIX = "computer-linker-"
_MEMORY_FILES = ("memory.max", "memory.swap.max")
_MEMORY_FILES_V1 = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
_WEIGHTS = (("cpu.weight", "25"), ("cpu.shares", "256"))
"""Of all commands together, v2 and v1: a quarter of the default, which a single process of the service may have."""
_REMOVE_TRIES = 100


class ControlGroups:
    """The group of one launcher: a folder in one hierarchy (v2), or in several (v1: processes, processor time, memory)."""

    def __init__(self, tops: tuple[str, ...], *, is_unified: bool) -> None:
        self.tops = tops
        """The folder with the pids controller comes first, the one with the memory controller last."""
        self.is_unified = is_unified
        self.memory = memory_here(tops, is_unified=is_unified)
        """The memory of this machine, or of the service's container."""

    @classmethod
    def found(cls) -> "ControlGroups | None":
        """Create the launcher's group; None without the permission."""
        if read(f"{TOP}/cgroup.controllers"):
            return cls._made(_delegated(), is_unified=True)
        if os.geteuid() == 0:
            return cls._made(_legacy(), is_unified=False)
        return None

    @classmethod
    def _made(cls, above: tuple[str, ...], *, is_unified: bool) -> "ControlGroups | None":
        for place in above:
            _remove_old(place)
        groups = cls(tuple(f"{place}/{_name(os.getpid())}" for place in above), is_unified=is_unified)
        if not above or not groups.make("", memory=groups.memory * 3 // 4):
            groups.remove("")
            return None
        for file, weight in _WEIGHTS:
            for place in groups.tops:
                # It exists in one of them, or nowhere.
                write(f"{place}/{file}", weight)
        return groups

    def make(self, name: str, *, processes: int = 0, memory: int = 0) -> bool:
        """Create a group below ours with these limits, 0 for none; False on failure."""
        for place in self._places(name):
            try:
                os.mkdir(place)  # noqa: PTH102  # pathlib is slow to import
            except FileExistsError:
                pass
            except OSError:
                return False
        # A group that contains processes cannot delegate controllers; only the last level contains them.
        passes_on = self.is_unified and "/" not in name
        if passes_on and not _pass_on(self._places(name)[0]):
            return False
        return self.limit(name, processes=processes, memory=memory)

    def limit(self, name: str, *, processes: int = 0, memory: int = 0) -> bool:
        """Set a group's limits."""
        return limit(self._places(name), processes=processes, memory=memory)

    def end_with_one(self, name: str) -> None:
        """Make the OOM killer end the whole group rather than one process of it (v2)."""
        if self.is_unified:
            write(f"{self._places(name)[0]}/memory.oom.group", "1")

    def enter(self, name: str, pid: int) -> bool:
        """Move a process into a group.

        It takes up to 20 ms, during which no process of this machine starts or ends (the kernel waits for an RCU grace
        period). A second move right after it adds no cost.
        """
        return all(write(f"{place}/cgroup.procs", str(pid)) for place in self._places(name))

    def members(self, name: str) -> list[int]:
        return [int(pid) for pid in read(f"{self._places(name)[0]}/cgroup.procs").split() if pid != b"0"]

    def counters(self, name: str) -> list[str]:
        """The files that count reached process limits and processes ended by the memory limit."""
        places = self._places(name)
        return [
            f"{places[0]}/pids.events",
            f"{places[-1]}/{'memory.events' if self.is_unified else 'memory.oom_control'}",
        ]

    def remove(self, name: str) -> bool:
        """Remove an empty group; False when it is not empty yet."""
        removed = [_rmdir(place) for place in self._places(name)]
        return all(removed)

    def remove_all(self) -> None:
        """Remove every group created here."""
        for top in self.tops:
            _remove_tree(top)

    def places(self, name: str) -> list[str]:
        return self._places(name)

    def _places(self, name: str) -> list[str]:
        return [f"{top}/{name}" if name else top for top in self.tops]


def limit(places: list[str], *, processes: int = 0, memory: int = 0) -> bool:
    """Set the limits of the group in these folders; 0 leaves a limit unchanged."""
    if processes and not write(f"{places[0]}/pids.max", str(processes)):
        return False
    if not memory:
        return True
    largest, swap = _MEMORY_FILES if len(places) == 1 else _MEMORY_FILES_V1
    # Swap is excluded (v1 counts both together, and the sum must not be below memory alone); often it is not counted.
    with_swap = "0" if len(places) == 1 else str(memory)
    is_set = write(f"{places[-1]}/{largest}", str(memory))
    return (
        write(f"{places[-1]}/{swap}", with_swap) and (is_set or write(f"{places[-1]}/{largest}", str(memory)))
    ) or is_set


def memory_here(tops: tuple[str, ...], *, is_unified: bool) -> int:
    """The available memory in bytes: the machine's, or the limit of an ancestor group."""
    least = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    place = tops[-1] if tops else TOP
    while len(place) > len(TOP):
        text = read(f"{place}/{_MEMORY_FILES[0] if is_unified else _MEMORY_FILES_V1[0]}").strip()
        if text.isdigit():
            least = min(least, int(text))
        place = place.rpartition("/")[0]
    return least


def _delegated() -> tuple[str, ...]:
    """Our own v2 group, emptied so that it can delegate its controllers; None where others share it."""
    own = f"{TOP}{_own(b'')}".rstrip("/")
    if not {b"pids", b"memory"} <= set(read(f"{own}/cgroup.controllers").split()):
        return ()
    if not read(f"{own}/cgroup.type"):
        # The machine's root group may contain processes and still delegate controllers.
        return (own,) if _pass_on(own) else ()
    service = os.getppid()
    ours = {service, *children(service)}
    members = [int(pid) for pid in read(f"{own}/cgroup.procs").split()]
    if os.path.basename(own) == "service":  # noqa: PTH119  # a launcher before us has moved the service there
        own = own.rpartition("/")[0]
        return (own,) if b"pids" in read(f"{own}/cgroup.subtree_control").split() else ()
    if not set(members) <= ours:
        return ()
    try:
        os.mkdir(f"{own}/service")  # noqa: PTH102  # pathlib is slow to import
    except FileExistsError:
        pass
    except OSError:
        return ()
    moved = all(write(f"{own}/service/cgroup.procs", str(pid)) for pid in members)
    return (own,) if moved and _pass_on(own) else ()


def _pass_on(group: str) -> bool:
    """Let a v2 group's controllers apply to the groups in it; False without those for processes and memory."""
    passed = write(f"{group}/cgroup.subtree_control", "+pids +memory")
    # Not delegated everywhere.
    write(f"{group}/cgroup.subtree_control", "+cpu")
    return passed


def _legacy() -> tuple[str, ...]:
    """Our own v1 groups: pids and memory, and cpu where the controller exists."""
    pids, cpu, memory = (f"{TOP}/{name}{_own(name.encode())}".rstrip("/") for name in ("pids", "cpu", "memory"))
    if not read(f"{pids}/cgroup.procs") or not read(f"{memory}/memory.limit_in_bytes"):
        return ()
    return (pids, cpu, memory) if os.access(f"{cpu}/cgroup.procs", os.W_OK) else (pids, memory)


def _own(controller: bytes) -> str:
    """The path of the group we are in."""
    for line in read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(b":", 2)
        if controller in names.split(b","):
            return path.decode()
    return "/"


def _name(pid: int) -> str:
    """A unique name: the process id and its start time."""
    return f"{_PREFIX}{pid}-{_started(pid)}"


def _started(pid: int) -> int:
    origin = origin_of(pid)
    return 0 if origin is None else origin[1]


def _remove_old(above: str) -> None:
    """End and remove the groups of launchers that were killed."""
    for name in _folders(above):
        pid, _, started = name.removeprefix(_PREFIX).partition("-")
        # Never a group that is not certainly ours: what is in it is killed.
        if name.startswith(_PREFIX) and pid.isdigit() and started.isdigit() and int(started) != _started(int(pid)):
            _remove_tree(f"{above}/{name}")


def _remove_tree(group: str) -> None:
    """Kill everything in and below a group, and remove it. A killed process stays in it for a moment."""
    for _ in range(_REMOVE_TRIES):
        members = read(f"{group}/cgroup.procs").split()
        if b"0" in members:
            # A process of another pid namespace, so of a service in another container.
            return
        for pid in members:
            send(int(pid), SIGKILL)
        for name in _folders(group):
            _remove_tree(f"{group}/{name}")
        if _rmdir(group):
            return
        time.sleep(0.01)


def _folders(place: str) -> list[str]:
    try:
        with os.scandir(place) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _rmdir(group: str) -> bool:
    try:
        os.rmdir(group)  # noqa: PTH106  # pathlib is slow to import
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
