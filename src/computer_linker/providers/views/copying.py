"""Views as copies: for folders that overlayfs cannot cover, the whole folder is copied, by reference where the disk can."""

import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from computer_linker.errors import LimitExceeded, OsPermissionRequired
from computer_linker.providers.views.changes import Comparison
from computer_linker.providers.views.entries import copy_file, copy_link, copy_metadata
from computer_linker.providers.views.names import Parts, entry_of, open_folder, refuse_deep
from computer_linker.system import os

MAX_ENTRIES = 200_000
Skips = Callable[[Parts], bool]
"""True for a name that no program may see, and that is not copied."""


@dataclass(slots=True)
class FolderCopy:
    """Copies a folder with modes, times, links and attributes. Devices, sockets and hidden names are left out."""

    skips: Skips
    max_bytes: int
    leaves_out: tuple[int, int]
    """The device and inode of the service's own state, in case it lies in the folder."""
    _entries: int = 0
    _bytes: int = 0

    def copy(self, held: int, to: Path) -> None:
        """Copy a held folder into an empty one."""
        source, target = open_folder(held, "."), os.open(to, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.fill(source, target)
            copy_metadata(source, target, os.fstat(source))
        finally:
            os.close(source)
            os.close(target)

    def fill(self, source: int, target: int, parts: Parts = ()) -> None:
        """Copy everything of the open folder `source` into the empty open folder `target`."""
        refuse_deep(parts)
        for name in os.listdir(source):
            below = (*parts, name)
            if self.skips(below):
                continue
            try:
                self._entry(source, name, target, below)
            except FileNotFoundError:
                # Removed since the folder was listed.
                continue
            except PermissionError:
                path = "/".join(below)
                raise OsPermissionRequired(
                    f"The folder cannot be copied for a view: the system does not let this user read {path}.", path=path
                ) from None

    def _entry(self, source: int, name: str, target: int, below: Parts) -> None:
        found = os.stat(name, dir_fd=source, follow_symlinks=False)
        if (found.st_dev, found.st_ino) == self.leaves_out:
            return
        self._count(found)
        if stat.S_ISLNK(found.st_mode):
            copy_link(source, name, target, name)
        elif stat.S_ISREG(found.st_mode):
            copy_file(source, name, target, name, found.st_size)
        elif stat.S_ISDIR(found.st_mode) and found.st_dev == os.fstat(source).st_dev:
            self._folder(source, name, target, below)

    def _folder(self, source: int, name: str, target: int, below: Parts) -> None:
        opened = open_folder(source, name)
        try:
            os.mkdir(name, 0o700, dir_fd=target)
            made = open_folder(target, name)
            try:
                self.fill(opened, made, below)
                copy_metadata(opened, made, os.fstat(opened))
            finally:
                os.close(made)
        finally:
            os.close(opened)

    def _count(self, found: os.stat_result) -> None:
        self._entries += 1
        self._bytes += found.st_blocks * 512
        if self._entries > MAX_ENTRIES or self._bytes > self.max_bytes:
            raise LimitExceeded(
                "The kernel has no overlay for this folder, and it is too large to be copied for a view.",
                maxEntries=MAX_ENTRIES,
                maxBytes=self.max_bytes,
            )


@dataclass(slots=True)
class CopyComparison(Comparison):
    """Compares a copy with its folder: the change time separates what its programs did from what changed in the folder."""

    filled_ns: int = 0
    """When the copy was complete, by the file system's clock; what programs changed is newer, and no program can set that."""
    skips: Skips = lambda _parts: False

    def _folder(self, upper: int, lower: int | None, parts: Parts, *, is_anew: bool = False) -> None:
        refuse_deep(parts)
        names = os.listdir(upper)
        for name in names:
            found = os.stat(name, dir_fd=upper, follow_symlinks=False)
            if found.st_ctime_ns >= self.filled_ns or stat.S_ISDIR(found.st_mode):
                self._changed(upper, lower, name, found, (*parts, name))
        if lower is None:
            return
        for name in set(os.listdir(lower)) - set(names):  # an open folder has no path
            before = entry_of(lower, name)
            if before is None or before.kind == "other" or self.skips((*parts, name)):
                continue
            if before.changed_ns <= self.base_ns:
                # Newer ones came into the folder after it was copied.
                self._add((*parts, name), "removed", before, None, lower)

    def _changed(self, upper: int, lower: int | None, name: str, found: os.stat_result, parts: Parts) -> None:
        before = None if lower is None else entry_of(lower, name)
        is_same_folder = before is not None and before.kind == "directory" and stat.S_ISDIR(found.st_mode)
        if found.st_ctime_ns < self.filled_ns and not is_same_folder:
            # Copied, and then removed or replaced in the folder itself: only what was changed in it here counts.
            if stat.S_ISDIR(found.st_mode):
                self._both(upper, None, name, parts, is_anew=False)
            return
        self._compared(upper, lower, name, found, parts, is_anew=False)
