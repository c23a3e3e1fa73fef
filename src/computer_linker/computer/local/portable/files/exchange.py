"""Restoring many files of one folder: each is exchanged with what is stored, by one rename a file."""

import stat as modes
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from computer_linker.computer.facets.files import Changed, Keeper, Mark, Restore
from computer_linker.computer.local.faults import fault
from computer_linker.computer.local.portable.files.keep import (
    MAX_COPIED,
    MAY_BE_REWRITTEN,
    copy_kept,
    removing,
    restoring,
)
from computer_linker.computer.local.portable.files.open import READ, OpenedParent
from computer_linker.computer.local.portable.files.stage import Staged, StagingArea, rename_new, temporary_name
from computer_linker.computer.local.portable.openat2 import RENAME_EXCHANGE, rename
from computer_linker.computer.local.portable.roots import HOLD, place_of
from computer_linker.computer.shown_folders import SHOWN
from computer_linker.errors import Conflict, LinkError
from computer_linker.model.paths import RootedPath
from computer_linker.policy.names import GIT_NAMES
from computer_linker.policy.paths import check_name
from computer_linker.system import os

_GIT_NAMES = frozenset(name.casefold() for name in GIT_NAMES)


@dataclass(slots=True)
class _File:
    name: str
    kept: str
    before: Mark | None
    inode: int
    """Of the file that is put in place."""
    result: Changed
    stored_ns: int = 0
    """The change time of the old file once it was stored: the kernel sets it with every change."""


class StagedExchange(Staged):
    """A run of restores of regular files in one folder.

    An exchange puts the new file in place and stores the old one in the same step, under the same stored name: a file needs no
    link for its undo data, and the run needs one descriptor. What is no plain file on both sides is left to `StagedRestore`.
    """

    def __init__(self, place: OpenedParent, area: StagingArea, keeper: Keeper) -> None:
        super().__init__(place, Changed(place.path, "modified"))
        self.area = area
        self.keeper = keeper
        self.files: list[_File] = []
        self.done = 0
        self.was_shown = False
        """A program that ran when the first file was exchanged may have had any of them open."""

    @classmethod
    def of(cls, area: StagingArea, above: RootedPath) -> "StagedExchange | None":
        """The exchange for files of a folder; None where they are restored one by one."""
        keeper, opener = area.keeper, area.opener
        if keeper is None or keeper.room < 0 or opener.roots.surround_state or above.name.casefold() == "hooks":
            return None
        try:
            folder, real = opener.open(above, HOLD, for_writing=True)
        except LinkError:
            return None
        if real.parts != above.parts or not _can_exchange(keeper.folder, folder):
            os.close(folder)
            return None
        return cls(OpenedParent(folder, "", real), area, keeper)

    @property
    def results(self) -> list[Changed]:
        return [file.result for file in self.files]

    def prepare(self, changes: Sequence[Restore]) -> list[Restore]:
        """Stage what can be exchanged, and return the other changes."""
        return [change for change in changes if not self._is_staged(change)]

    def _is_staged(self, change: Restore) -> bool:
        path, kept, expect = change.path, change.kept, change.expect
        name = path.parts[-1]
        if (path.root, path.parts) in self.area.vacated or name.casefold() in _GIT_NAMES or "/" in kept:
            return False
        check_name(path, for_writing=True)
        try:
            what = os.stat(kept, dir_fd=self.keeper.folder, follow_symlinks=False)
        except OSError:
            return False
        found = self._found(name)
        is_plain = modes.S_ISREG(what.st_mode) and (found is None) == (expect is None)
        if not is_plain or (found is not None and not self._is_replaceable(found, expect)):
            return False
        mark = Mark(what.st_dev, what.st_ino, what.st_size, what.st_mtime_ns)
        step = removing(path, mark) if expect is None else restoring(path, kept, mark, expect.size)
        self.steps.append(step)
        result = Changed(path, "created" if expect is None else "modified")
        self.files.append(_File(name, kept, expect, what.st_ino, result))
        return True

    def _found(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.place.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _is_replaceable(self, found: os.stat_result, expect: Mark | None) -> bool:
        # A file with other names is stored as a copy: a write to one of them would change what is stored.
        is_alone = modes.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size <= self.keeper.room
        return is_alone and _fits(found, expect)

    def commit(self) -> None:
        folder, kept = self.place.folder, self.keeper.folder
        self.was_shown = self._is_shown()
        for file in self.files:
            try:
                if file.before is None:
                    rename_new(kept, file.kept, folder, file.name)
                    self.done += 1
                else:
                    rename(kept, file.kept, folder, file.name, flags=RENAME_EXCHANGE)
                    self.done += 1
                    old = os.stat(file.kept, dir_fd=kept, follow_symlinks=False)
                    if not _fits(old, file.before):
                        raise self._changed(file)
                    file.stored_ns = old.st_ctime_ns
                now = os.stat(file.name, dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                raise self._changed(file) from None
            except OSError as error:
                raise fault(error, file.result.path.shown) from error
            file.result.is_confirmed = now.st_ino == file.inode

    def undo(self) -> None:
        folder, kept = self.place.folder, self.keeper.folder
        while self.done:
            file = self.files[self.done - 1]
            if file.before is None:
                rename_new(folder, file.name, kept, file.kept)
            else:
                rename(folder, file.name, kept, file.kept, flags=RENAME_EXCHANGE)
            self.done -= 1

    def tidy(self) -> None:
        """Store copies where a program may have the old files open: it could rewrite what undo restores."""
        if not self.was_shown and not self._is_shown():
            return
        for file in self.files:
            shown = file.result.path.shown
            if file.before is None:
                continue
            if file.before.size > MAX_COPIED:
                file.result.warnings.append(MAY_BE_REWRITTEN.format(shown))
            elif not self._is_replaced(file):
                file.result.warnings.append(
                    f"undoable: false. A program may have {shown} open, and no copy of it could be stored."
                )
                with suppress(FileNotFoundError):
                    os.unlink(file.kept, dir_fd=self.keeper.folder)

    def _is_replaced(self, file: _File) -> bool:
        """Replace a stored file by a copy; False where a program changed it meanwhile, or it cannot be copied."""
        kept = self.keeper.folder
        try:
            opened = os.open(file.kept, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=kept)
            try:
                found = os.fstat(opened)
                name = copy_kept(self.keeper, opened, found, self.keeper.new_name(), lambda: False)
                is_same = os.fstat(opened).st_ctime_ns == found.st_ctime_ns == file.stored_ns
            finally:
                os.close(opened)
            os.rename(name, file.kept, src_dir_fd=kept, dst_dir_fd=kept)
        except OSError:
            return False
        return is_same

    def _is_shown(self) -> bool:
        return SHOWN.has(f"{place_of(self.place.folder, self.place.path.root)}/")

    def _changed(self, file: _File) -> Conflict:
        shown = file.result.path.shown
        return Conflict(f"{shown} was changed by something else just now.", path=shown)


def _fits(found: os.stat_result, mark: Mark | None) -> bool:
    return mark is not None and (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) == (
        mark.device,
        mark.inode,
        mark.size,
        mark.modified_ns,
    )


def _can_exchange(kept: int, folder: int) -> bool:
    """True where both are on one file system that can exchange two names."""
    device = os.fstat(kept).st_dev
    return device == os.fstat(folder).st_dev and _is_able(device, kept)


@lru_cache(maxsize=64)
def _is_able(device: int, folder: int) -> bool:
    """Try it, in the private folder of stored files."""
    names = temporary_name(), temporary_name()
    try:
        for name in names:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder))
        rename(folder, names[0], folder, names[1], flags=RENAME_EXCHANGE)
    except OSError:
        return False
    finally:
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
    return True
