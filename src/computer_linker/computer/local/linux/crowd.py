"""A control group that bounds how many processes all commands may be together."""

import os

from computer_linker.computer.local.linux.proc_files import read, write

MAX_PROCESSES = 2048


class Crowd:
    """The launcher stands in its own crowd, so that what it forks is there from the start.

    Moving a process into a control group takes up to ten milliseconds, and while it lasts no process of this machine can
    start or end. So it is done once.
    """

    def __init__(self) -> None:
        self.place = _make()
        if self.place and not self.enter():
            _remove(self.place)
            self.place = ""

    def enter(self) -> bool:
        """Put this process into the crowd; False when it cannot."""
        return bool(self.place) and write(f"{self.place}/cgroup.procs", "0")

    def leave(self) -> bool:
        """Take this process out again; False when there is no crowd."""
        return bool(self.place) and write(f"{os.path.dirname(self.place)}/cgroup.procs", "0")  # noqa: PTH120

    def remove(self) -> None:
        """Leave, and take the group away; it must be empty by then."""
        if self.leave():
            _remove(self.place)


def _make() -> str:
    """The new group's folder; empty where there can be none, since only the superuser can make one."""
    if os.geteuid() != 0:
        return ""
    for above in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
        _remove_old_crowds(above)
        crowd = f"{above}/computer-linker-{os.getpid()}"
        try:
            os.mkdir(crowd)  # noqa: PTH102  # pathlib is slow to import
        except OSError:
            continue
        if write(f"{crowd}/pids.max", str(MAX_PROCESSES)):
            return crowd
        _remove(crowd)
    return ""


def _remove_old_crowds(above: str) -> None:
    """Remove the groups of launchers that were killed."""
    try:
        names = os.listdir(above)  # noqa: PTH208  # pathlib is slow to import
    except OSError:
        return
    for name in names:
        pid = name.removeprefix("computer-linker-")
        if pid != name and pid.isdigit() and not read(f"/proc/{pid}/stat"):
            _remove(f"{above}/{name}")


def _remove(group: str) -> None:
    try:
        os.rmdir(group)  # noqa: PTH106  # pathlib is slow to import
    except OSError:
        return
