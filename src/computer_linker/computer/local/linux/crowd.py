"""A control group that bounds how many processes all commands may be together."""

import contextlib
import os

from computer_linker.computer.local.linux.proc_files import read, write

MAX_PROCESSES = 2048


def make_crowd() -> str:
    """A control group that bounds how many processes all commands may be together; only the superuser can make one."""
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
        with contextlib.suppress(OSError):
            os.rmdir(crowd)  # noqa: PTH106  # pathlib is slow to import
    return ""


def _remove_old_crowds(above: str) -> None:
    """Remove the groups of launchers that were killed."""
    with contextlib.suppress(OSError):
        for name in os.listdir(above):  # noqa: PTH208  # pathlib is slow to import
            pid = name.removeprefix("computer-linker-")
            if pid != name and pid.isdigit() and not read(f"/proc/{pid}/stat"):
                with contextlib.suppress(OSError):
                    os.rmdir(f"{above}/{name}")  # noqa: PTH106  # pathlib is slow to import
