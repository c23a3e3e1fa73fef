"""The base of every staged change: temporaries, missing folders, and the steps prepare, commit and undo."""

import errno
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from computer_linker.computer.facets.files import Changed, Inverse, Keeper, Stat
from computer_linker.computer.local.portable.files.keep import unmaking
from computer_linker.computer.local.portable.files.open import OpenedParent, Opener
from computer_linker.computer.local.portable.files.read import Memory
from computer_linker.computer.local.portable.files.trees import remove_tree
from computer_linker.computer.local.portable.files.walk import TEMPORARY
from computer_linker.computer.local.portable.openat2 import RENAME_NOREPLACE, rename
from computer_linker.computer.local.portable.roots import HOLD, place_of
from computer_linker.computer.shown_folders import SHOWN
from computer_linker.errors import LimitExceeded
from computer_linker.model.paths import RootedPath
from computer_linker.system import os

# Reserves disk space for the audit journal: file writes stop before the disk is full.

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


_STALE_S = 3600


@dataclass(frozen=True, slots=True)
class StagingArea:
    """The resources for preparing a change."""

    opener: Opener
    memory: Memory
    keeper: Keeper | None
    halted: Callable[[], bool]
    swept: set[tuple[int, int]]
    room: Room
    vacated: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    """Names that an earlier change of the same batch frees."""
    judged: "set[Staged]" = field(default_factory=set)
    """Folders to be moved, of all batches: what others put into them meanwhile is judged too."""


class Staged:
    """One change, prepared but not made. `commit` is quick and synchronous; `undo` reverts it."""

    def __init__(self, place: OpenedParent, result: Changed) -> None:
        self.place = place
        self.result = result
        self.steps: list[Inverse] = []
        """The steps that revert this change, in order."""
        self.leftovers: list[dict[str, Any]] = []
        """Temporaries that a crash could leave behind."""
        self.made: list[tuple[int, str]] = []
        self.holds_closed = False
        """True for a folder with names in it that are closed to programs."""
        self.has_tree = False
        """True for a folder that is put in place with what is in it."""

    @property
    def places(self) -> tuple[OpenedParent, ...]:
        """The names that it changes."""
        return (self.place,)

    def notice(self, other: "Staged") -> None:
        """Another change is about to be made: judge it where it lies in a folder that this one moves."""

    @property
    def results(self) -> list[Changed]:
        """The result of each change that it stands for."""
        return [self.result]

    def unseen(self) -> AbstractContextManager[None]:
        """Around putting it in place: no program that sees that place runs or starts, where the folder holds closed names."""
        if not self.holds_closed:
            return nullcontext()
        above = place_of(self.place.folder, self.place.path.root)
        return SHOWN.unseen(f"{above.rstrip('/')}/{self.place.name}", self.place.path.shown)

    @property
    def has_more(self) -> bool:
        """True when `finish` has work to do."""
        return False

    def settle(self) -> None:
        """The slow part of preparing: syncing to disk."""

    def refresh(self) -> None:
        """Right before `commit`: look again at what the change replaces, where another one may have come first."""

    def commit(self) -> None:
        raise NotImplementedError

    def undo(self) -> None:
        """Revert what `commit` did, as far as it got."""
        raise NotImplementedError

    def tidy(self) -> None:
        """After the change, remove temporaries that nothing else refers to."""

    def finish(self) -> None:
        """Slow work after the change is made, such as emptying a removed folder."""

    def close(self) -> None:
        """Close all descriptors, and remove every temporary that is left."""
        self.place.close()
        for folder, _ in self.made:
            os.close(folder)
        self.made.clear()

    def leave(self, path: RootedPath) -> None:
        """Record a temporary for the clean-up after a crash."""
        self.leftovers.append({"root": path.root, "path": list(path.parts)})

    def make_missing(self) -> None:
        """Create the folders between the held folder and the name; afterwards `place` holds the last of them."""
        place = self.place
        while place.missing:
            name = place.missing[0]
            is_made = True
            try:
                os.mkdir(name, dir_fd=place.folder)
            except FileExistsError:
                is_made = False
            below = os.open(name, HOLD | os.O_NOFOLLOW, dir_fd=place.folder)
            if is_made:
                self.made.append((place.folder, name))
            else:
                os.close(place.folder)
            place.folder, place.missing = below, place.missing[1:]

    def enter_made(self) -> None:
        """Hold the folders that something else has created meanwhile."""
        place = self.place
        while place.missing:
            try:
                below = os.open(place.missing[0], HOLD | os.O_NOFOLLOW, dir_fd=place.folder)
            except FileNotFoundError:
                return
            os.close(place.folder)
            place.folder, place.missing = below, place.missing[1:]

    def unmake(self) -> None:
        """Remove the folders `make_missing` created, where they are empty."""
        for folder, name in reversed(self.made):
            try:
                os.rmdir(name, dir_fd=folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                    raise

    def unmaking_steps(self) -> list[Inverse]:
        """The undo steps that remove the folders that are missing now, the deepest first."""
        above = self.place.path.parent
        steps: list[Inverse] = []
        for _ in self.place.missing:
            steps.append(unmaking(above))
            above = above.parent
        return steps


def temporary_name() -> str:
    """An unguessable name, so that nothing can be planted there."""
    return TEMPORARY + secrets.token_hex(12)


def rename_new(source_folder: int, source: str, folder: int, name: str) -> None:
    """Rename without replacing anything. Raises FileExistsError when the name is taken."""
    try:
        rename(source_folder, source, folder, name, flags=RENAME_NOREPLACE)
        return
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
            raise
    # A file system without NOREPLACE: a hard link never replaces, and a folder only replaces an empty one.
    try:
        os.link(source, name, src_dir_fd=source_folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EACCES, errno.EISDIR):
            raise
        os.mkdir(name, dir_fd=folder)
        os.rename(source, name, src_dir_fd=source_folder, dst_dir_fd=folder)
        return
    os.unlink(source, dir_fd=source_folder)


def is_same(place: OpenedParent, stat: Stat | None) -> bool:
    """True while the name still has the state that was recorded when the change was prepared."""
    now = place.stat()
    if stat is None or now is None:
        return stat is now
    return stat.mark.fits(now)


def sweep(folder: int, swept: set[tuple[int, int]]) -> None:
    """Remove old temporaries that a crash left in this folder; checked once per folder."""
    found = os.fstat(folder)
    key = (found.st_dev, found.st_ino)
    if key in swept or len(swept) > 10_000:
        return
    swept.add(key)
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(opened) as entries:
            old = [entry.name for entry in entries if entry.name.startswith(TEMPORARY)]
        for name in old:
            if os.stat(name, dir_fd=opened, follow_symlinks=False).st_ctime < time.time() - _STALE_S:
                remove_tree(opened, name)
    except OSError:
        # Cleaning is best effort; it must never prevent a write.
        pass
    finally:
        os.close(opened)
