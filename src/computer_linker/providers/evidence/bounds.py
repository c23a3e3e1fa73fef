"""Prunes evidence: folders of this service are removed by age, then by number and size, the oldest first."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass

MAX_AGE_S = 30 * 24 * 3600
MAX_FOLDERS = 2000
MAX_BYTES = 500_000_000
_EVERY_S = 60.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_EXECUTION = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_pruned: dict[tuple[int, int], float] = {}


@dataclass(frozen=True, slots=True)
class KeptEvidence:
    """One execution's folder."""

    day: str
    name: str
    size: int
    modified: float


def prune(desktop: int, now: float, *, keep: str, every_s: float = _EVERY_S) -> int:
    """Remove what exceeds the bounds beneath a held `artifacts/desktop`; returns the number of removed folders."""
    found = os.fstat(desktop)
    place = (found.st_dev, found.st_ino)
    if now - _pruned.get(place, 0.0) < every_s:
        return 0
    _pruned[place] = now
    room, number, gone = MAX_BYTES, 0, 0
    # Execution ids are ULIDs, so the largest name is the newest.
    for one in sorted(_kept(desktop), key=lambda kept: kept.name, reverse=True):
        room, number = room - one.size, number + 1
        is_over = number > MAX_FOLDERS or room < 0 or now - one.modified > MAX_AGE_S
        if is_over and one.name != keep:
            _remove(desktop, one)
            gone += 1
    return gone


def _kept(desktop: int) -> Iterator[KeptEvidence]:
    for day in _names(desktop):
        if not _DAY.fullmatch(day):
            continue
        with _opened(desktop, day) as day_fd:
            for name in _names(day_fd.fd):
                if _EXECUTION.fullmatch(name):
                    yield _measured(day_fd.fd, day, name)


def _measured(day_fd: int, day: str, name: str) -> KeptEvidence:
    size = 0
    with _opened(day_fd, name) as folder:
        for file in _names(folder.fd):
            size += os.stat(file, dir_fd=folder.fd, follow_symlinks=False).st_size
    modified = os.stat(name, dir_fd=day_fd, follow_symlinks=False).st_mtime
    return KeptEvidence(day, name, size, modified)


def _remove(desktop: int, one: KeptEvidence) -> None:
    with _opened(desktop, one.day) as day, _opened(day.fd, one.name) as folder:
        if folder.fd < 0:
            return
        for file in _names(folder.fd):
            found = os.stat(file, dir_fd=folder.fd, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                # The service creates no folders in there; another program's is left alone.
                return
            os.unlink(file, dir_fd=folder.fd)
        os.rmdir(one.name, dir_fd=day.fd)


def _names(folder: int) -> list[str]:
    return os.listdir(folder) if folder >= 0 else []  # a descriptor, not a path


class _opened:
    """A folder by name beneath a held one; `fd` is -1 for a link or anything else that is no folder."""

    def __init__(self, above: int, name: str) -> None:
        try:
            self.fd = os.open(name, _FOLDER, dir_fd=above) if above >= 0 else -1
        except OSError:
            self.fd = -1

    def __enter__(self) -> "_opened":
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd >= 0:
            os.close(self.fd)
