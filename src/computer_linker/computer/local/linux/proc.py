"""Process name and start time from /proc."""

from pathlib import Path

from computer_linker.computer.local.linux.proc_files import origin_of
from computer_linker.model.titles import safe_title


def process_name(pid: int | None) -> str:
    """The name of a process's executable where it may be read; empty when the process has ended."""
    if pid is None:
        return ""
    try:
        return safe_title(Path(f"/proc/{pid}/exe").readlink().name.removesuffix(" (deleted)"))
    except OSError:
        pass
    try:
        return safe_title(Path(f"/proc/{pid}/comm").read_text(errors="replace").strip())
    except OSError:
        return ""


def started_at(pid: int) -> int | None:
    """The start time in ticks since boot; None when the process has ended. With the pid it identifies one process."""
    origin = origin_of(pid)
    return None if origin is None else origin[1]
