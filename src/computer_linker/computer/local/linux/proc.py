"""What /proc tells of a process."""

from pathlib import Path

from computer_linker.computer.local.linux.proc_files import origin_of
from computer_linker.model.titles import shown_title


def process_name(pid: int | None) -> str:
    """The program a process runs, by its file's name where it may be read; empty when it is gone."""
    if pid is None:
        return ""
    try:
        return shown_title(Path(f"/proc/{pid}/exe").readlink().name.removesuffix(" (deleted)"))
    except OSError:
        pass
    try:
        return shown_title(Path(f"/proc/{pid}/comm").read_text(errors="replace").strip())
    except OSError:
        return ""


def started_at(pid: int) -> int | None:
    """When a process started, in the kernel's ticks since boot; None when it is gone. With the pid it names one process."""
    origin = origin_of(pid)
    return None if origin is None else origin[1]
