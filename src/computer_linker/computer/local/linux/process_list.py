"""Every process of this computer from /proc: names and sizes, never arguments, environment or open files."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from computer_linker.computer.facets.processes import Process
from computer_linker.computer.local.linux.proc_files import read, stat_fields
from computer_linker.model.titles import safe_title

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def all_processes() -> list[Process]:
    """The processes by pid; one that ends meanwhile is left out."""
    booted = time.time() - float(read("/proc/uptime").split()[0])
    pids = sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [found for pid in pids if (found := _process(pid, booted)) is not None]


def _process(pid: int, booted: float) -> Process | None:
    fields = stat_fields(pid)
    try:
        owner = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None
    if len(fields) < 22:
        return None
    started = datetime.fromtimestamp(booted + int(fields[19]) / _TICK, UTC)
    return Process(
        pid=pid,
        parent=int(fields[1]),
        name=safe_title(read(f"/proc/{pid}/comm").decode("utf-8", "replace").strip()),
        started_at=started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        is_own=owner == os.geteuid(),
        memory_bytes=int(fields[21]) * _PAGE,
        cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICK,
    )
