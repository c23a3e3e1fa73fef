"""Reserves disk space for the audit journal: file writes stop before the disk is full."""

import os
from pathlib import Path

from computer_linker.errors import LimitExceeded
from computer_linker.model.paths import RootedPath

KEPT_BYTES = 16 << 20
KEPT_FILES = 256
LARGEST = 4 << 30
"""The size limit of a file of unknown length, such as one streamed from another computer."""


class Room:
    """The reserve on the file system of the service's own state."""

    def __init__(self, largest: int = LARGEST) -> None:
        self._system: int | None = None
        self.largest = largest

    def keep_for(self, state: Path) -> None:
        """Reserve space on the file system of this folder."""
        try:
            self._system = os.statvfs(state).f_fsid
        except (OSError, AttributeError):
            self._system = None

    def check_growing(self, folder: int, path: RootedPath, size: int, more: int) -> None:
        """Refuse to let a file of this size grow further: its source may be endless."""
        if size + more > self.largest:
            raise LimitExceeded(
                f"More came for {path.shown} than one file may hold, so it was not written.",
                path=path.shown,
                maxBytes=self.largest,
            )
        self.check(folder, path, more)

    def check(self, folder: int, path: RootedPath, size: int) -> None:
        """Refuse a new file that would use the reserve. Other file systems may be filled."""
        if self._system is None:
            return
        now = os.fstatvfs(folder)
        if now.f_fsid != self._system:
            return
        room = now.f_bavail * now.f_frsize
        if room - size < KEPT_BYTES:
            raise LimitExceeded(
                f"The disk is almost full, so {path.shown} was not written: the last {KEPT_BYTES >> 20} MB are kept for the "
                "history, without which nothing runs. Free some space, then retry.",
                path=path.shown,
                freeBytes=room,
            )
        if now.f_files and now.f_favail < KEPT_FILES:
            raise LimitExceeded(
                f"The file system can hold hardly any more files, so {path.shown} was not made: the last {KEPT_FILES} are "
                "kept for the history, without which nothing runs. Delete some files, then retry.",
                path=path.shown,
                freeFiles=now.f_favail,
            )
