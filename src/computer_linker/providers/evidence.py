"""The evidence of one execution: a private folder in the workspace, written through held descriptors, and pruned."""

import json
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from computer_linker.errors import LimitExceeded, PathOutOfScope
from computer_linker.model.times import shown_ns
from computer_linker.system import os

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"[a-z]{1,20}\.(png|json|jsonl)")
MAX_BYTES = 50_000_000
"""The size limit of one execution's evidence."""


class Evidence:
    """One execution's folder, held open. No path above it is resolved again, so it cannot be redirected."""

    def __init__(self, folder: int, where: str) -> None:
        self._folder = folder
        self.where = where
        """The folder's path relative to the workspace."""
        self.files: list[str] = []
        self._size = 0
        self._trace: list[bytes] = []

    @classmethod
    def begin(cls, workspace: int, execution_id: str) -> Self:
        """Create the folder beneath a held workspace; blocking. Raises PathOutOfScope when a link is in its path."""
        day = datetime.now(UTC).strftime("%Y-%m-%d")
        held: list[int] = []
        try:
            above = workspace
            for name in ("artifacts", "desktop", day):
                above = _descend(above, name)
                held.append(above)
            os.mkdir(execution_id, 0o700, dir_fd=above)
            folder = os.open(execution_id, _FOLDER, dir_fd=above)
            prune(held[1], time.time(), keep=execution_id)
        except OSError as error:
            raise _not_creatable(error) from error
        finally:
            for fd in held:
                os.close(fd)
        return cls(folder, f"artifacts/desktop/{day}/{execution_id}")

    def write(self, name: str, data: bytes) -> None:
        """Add one file; blocking."""
        assert _NAME.fullmatch(name), name
        if self._size + len(data) > MAX_BYTES:
            raise LimitExceeded("The evidence of one execution is full.", limitBytes=MAX_BYTES)
        fd = os.open(name, _FILE, 0o600, dir_fd=self._folder)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        self._size += len(data)
        self.files.append(name)

    def trace(self, step: str, **facts: str | int | float | bool | None) -> None:
        """Record a step with its time: names, sizes and codes, never text that was typed or read."""
        line = {"at": shown_ns(time.time_ns()), "step": step, **facts}
        self._trace.append(json.dumps(line, ensure_ascii=False).encode() + b"\n")

    def finish(self, result: dict[str, Any]) -> None:
        """Write the trace and the result, and close; blocking."""
        try:
            self.write("trace.jsonl", b"".join(self._trace))
            self.write("result.json", json.dumps(result, ensure_ascii=False, indent=1).encode())
        finally:
            os.close(self._folder)


def hold(open_folder: Callable[[], int]) -> int:
    """The workspace as a descriptor for creating names; the kernel resolved it beneath the root."""
    found = open_folder()
    try:
        # Files are created through it, and O_PATH does not suffice for every call below.
        return os.open(".", _FOLDER, dir_fd=found)
    finally:
        os.close(found)


def _descend(above: int, name: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)


def _not_creatable(error: OSError) -> PathOutOfScope:
    return PathOutOfScope(
        "The evidence folder cannot be made in the workspace: artifacts/desktop must be plain folders, never links, "
        f"and writable ({error.strerror}).",
        rule="evidence",
    )


# Prunes evidence: folders of this service are removed by age, then by number and size, the oldest first.

MAX_AGE_S = 30 * 24 * 3600
MAX_FOLDERS = 2000
MAX_KEPT_BYTES = 500_000_000
_EVERY_S = 60.0
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
    room, number, gone = MAX_KEPT_BYTES, 0, 0
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
