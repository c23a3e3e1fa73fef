"""Detects a stalled child process, such as one that reads a pipe without a writer where it expects a file."""

import os
import time
from pathlib import Path

STEP_S = 0.5
_BUSY = 0.1
"""The share of one processor that a stalled child may use: some threads poll for work."""


class Stillness:
    """Samples the processor time of a process group. Needs /proc; elsewhere nothing counts as stalled."""

    def __init__(self, group: int, longest_s: float) -> None:
        self._group = group
        self._longest_s = longest_s
        self._seen = 0.0
        self._since = time.monotonic()

    def has_lasted(self) -> bool:
        """True once the group has used hardly any processor time, and not waited for a disk, for `longest_s`."""
        now, used = time.monotonic(), _used_by(self._group)
        if used is None or used - self._seen > _BUSY * (now - self._since):
            self.begin_anew(used or self._seen)
            return False
        return now - self._since >= self._longest_s

    def begin_anew(self, used: float | None = None) -> None:
        """Restart the measurement after output or processor use."""
        self._seen = self._seen if used is None else used
        self._since = time.monotonic()


def _used_by(group: int) -> float | None:
    """Processor seconds of a group; None when one of its threads waits for a disk, or when unknown."""
    total, found = 0, False
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = _fields(place / "stat")
            if fields[2] != str(group):
                continue
            found = True
            if any(_fields(thread / "stat")[0] == "D" for thread in (place / "task").iterdir()):
                return None
            total += int(fields[11]) + int(fields[12])
        except (OSError, IndexError):
            # It ended meanwhile.
            continue
    return total / os.sysconf("SC_CLK_TCK") if found else None


def _fields(place: Path) -> list[str]:
    """The fields after the name in /proc/PID/stat: state, parent, group and so on."""
    return place.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
