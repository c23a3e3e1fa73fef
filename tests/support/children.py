"""What this process has left running."""

import os
from pathlib import Path

# Servers of `multiprocessing`, which `support.commands` starts once for all tests of a process.
_SERVERS = (b"multiprocessing.forkserver", b"multiprocessing.resource_tracker")


def children_of_this_process() -> list[int]:
    """The ids of child processes, zombies included; those of the test support excepted."""
    found: list[int] = []
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        try:
            found += [int(pid) for pid in (task / "children").read_text().split()]
        except FileNotFoundError:
            # The thread has ended meanwhile.
            continue
    return [pid for pid in found if not is_of_test_support(pid)]


def is_of_test_support(pid: int) -> bool:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return any(server in line for server in _SERVERS)
