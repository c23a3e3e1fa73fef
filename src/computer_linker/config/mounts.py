"""The mounts of this system, by which a folder can show what lies elsewhere too. Empty where the system has no table of them."""

import re
import select
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock

from computer_linker.system import os

_TABLE = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount: where it is, the file system it shows, and from which folder of that on."""

    at: Path
    device: str
    top: Path


class MountTable:
    """The kernel's table, read again when the kernel reports a change. Asking costs microseconds."""

    def __init__(self) -> None:
        self.version = 0
        self._mounts: tuple[Mount, ...] = ()
        self._lock = Lock()
        self._poll: select.poll | None = None
        if not hasattr(select, "poll"):
            return
        try:
            self._fd = os.open(_TABLE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI)
        self._read()

    def mounts(self) -> tuple[Mount, ...]:
        with self._lock:
            if self._poll is not None and self._poll.poll(0):
                self._read()
        return self._mounts

    def current(self) -> int:
        """The version of the table as it is now."""
        self.mounts()
        return self.version

    def _read(self) -> None:
        os.lseek(self._fd, 0, os.SEEK_SET)
        pieces = []
        while piece := os.read(self._fd, 1 << 16):
            pieces.append(piece)
        lines = os.fsdecode(b"".join(pieces)).splitlines()
        self._mounts = tuple(_mount(line.split(" ")) for line in lines if line.count(" ") > 4)
        self.version += 1


def _mount(fields: list[str]) -> Mount:
    return Mount(Path(_plain(fields[4])), fields[2], Path(_plain(fields[3])))


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


@lru_cache(maxsize=1)
def table() -> MountTable:
    """The table of this process."""
    return MountTable()


def shown_below(path: Path, folder: Path) -> tuple[str, ...]:
    """Where mounts below a folder show a path, or a part of what it contains, once more; relative to the folder."""
    return _shown_below(table().current(), path, folder)


@lru_cache(maxsize=256)
def _shown_below(_version: int, path: Path, folder: Path) -> tuple[str, ...]:
    mounts = table().mounts()
    # The last of several mounts at one place is the one that is seen.
    own = max((each for each in reversed(mounts) if path.is_relative_to(each.at)), key=_depth, default=None)
    if own is None:
        return ()
    real = own.top / path.relative_to(own.at)
    found = []
    for each in mounts:
        if each.device != own.device or not each.at.is_relative_to(folder):
            continue
        if real.is_relative_to(each.top):
            found.append(each.at / real.relative_to(each.top))
        elif each.top.is_relative_to(real):
            found.append(each.at)
    return tuple(str(place.relative_to(folder)) for place in found if place != folder)


def _depth(mount: Mount) -> int:
    return len(mount.at.parts)
