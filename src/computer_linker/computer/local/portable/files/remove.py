"""Removing a name, and restoring a removed one."""

import errno
from contextlib import suppress

from computer_linker.computer.facets.files import Changed, Keeper, Mark, Remove, Restore, Stat
from computer_linker.computer.local.portable.files.judge import is_closed, may_remove
from computer_linker.computer.local.portable.files.keep import (
    MAX_COPIED,
    MAY_BE_REWRITTEN,
    drop_kept,
    keep_file,
    remaking,
    removing,
    restoring,
)
from computer_linker.computer.local.portable.files.open import FOLDER, READ, OpenedParent, stat_of
from computer_linker.computer.local.portable.files.stage import Staged, StagingArea, is_same, rename_new, temporary_name
from computer_linker.computer.local.portable.files.trees import copy_bytes, copy_tree, link_tree, remove_tree, scan_tree
from computer_linker.computer.shown_folders import SHOWN
from computer_linker.errors import Conflict, ExecutionFailed, InvalidRequest, NotFound
from computer_linker.policy.paths import refuse_held
from computer_linker.system import descriptor_path, os, sync


class StagedRemove(Staged):
    """A removal: into the keeper's folder where it can be stored, else permanent."""

    def __init__(self, place: OpenedParent, area: StagingArea, change: Remove) -> None:
        super().__init__(place, Changed(change.path, "deleted"))
        self.area = area
        self.change = change
        self.before: Stat | None = None
        self.bytes = 0
        self.kept: str | None = None
        self.aside: str | None = None
        """The temporary name, beside the old one, of a folder that is to be emptied."""
        self.is_gone = False

    def prepare(self) -> None:
        change = self.change
        self.before = before = self.place.stat()
        if before is None and change.only_if_empty:
            return
        if before is None:
            raise NotFound(f"{change.path.shown} does not exist.", path=change.path.shown)
        if before.type == "directory":
            self._inspect_folder(before)
        elif change.expect is not None and not change.expect.fits(before):
            raise Conflict(f"{change.path.shown} changed since.", path=change.path.shown)
        else:
            self.bytes = before.size if before.type == "file" else 0
        if change.only_if_empty:
            self.steps = [remaking(self.place.path)]
            return
        self._choose()

    def commit(self) -> None:
        place = self.place
        if self.change.only_if_empty:
            self._remove_empty()
            return
        if not is_same(place, self.before) and self.before is not None and self.before.type != "directory":
            raise Conflict(
                f"{self.change.path.shown} was changed by something else just now.", path=self.change.path.shown
            )
        if self.kept is not None and self.area.keeper is not None and self._is_kept(self.area.keeper, self.kept):
            pass
        elif self.aside is not None:
            os.rename(place.name, self.aside, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        else:
            os.unlink(place.name, dir_fd=place.folder)
        self.is_gone = True
        self.result.is_confirmed = place.stat() is None

    def undo(self) -> None:
        place = self.place
        if not self.is_gone:
            return
        if self.kept is not None and self.area.keeper is not None:
            rename_new(self.area.keeper.folder, self.kept, place.folder, place.name)
        elif self.aside is not None:
            rename_new(place.folder, self.aside, place.folder, place.name)
        else:
            raise ExecutionFailed(f"{self.change.path.shown} could not be put back.", path=self.change.path.shown)
        self.is_gone = False

    @property
    def has_more(self) -> bool:
        return self.aside is not None

    def finish(self) -> None:
        if self.aside is not None:
            remove_tree(self.place.folder, self.aside)

    def _inspect_folder(self, before: Stat) -> None:
        change = self.change
        refuse_held(self.place.path, "removed")
        if change.only_if_empty:
            return
        if not change.recursive:
            raise InvalidRequest(
                f"{change.path.shown} is a folder; use recursive to delete it.", path=change.path.shown
            )
        root = self.area.opener.roots.hold(self.place.path.root)
        opened = os.open(self.place.name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.place.folder)
        try:
            path = self.place.path
            scan = scan_tree(opened, judge=lambda below, _: may_remove(path, root, below), halted=self.area.halted)
        finally:
            os.close(opened)
        self.bytes, self.result.entries = scan.bytes, scan.entries
        mark = Stat("directory", scan.bytes, scan.newest_ns, before.mode, before.links, before.device, before.inode)
        if change.expect is not None and not change.expect.fits(mark):
            raise Conflict(f"Something in {change.path.shown} changed since.", path=change.path.shown)

    def _choose(self) -> None:
        """Choose how to remove: by one rename into the keeper's folder where possible, else aside, to be emptied later."""
        keeper, path = self.area.keeper, self.place.path
        assert self.before is not None
        has_room = keeper is not None and self.bytes <= keeper.room and _device(keeper.folder) == self.before.device
        if keeper is not None and self._is_in_use() and self.before.type in ("file", "directory"):
            if self._copied(keeper) if self.before.type == "file" else has_room and self._copied_tree(keeper):
                return
            self.result.warnings.append(MAY_BE_REWRITTEN.format(self.change.path.shown))
        if keeper is not None and has_room and self.area.opener.roots.surround_state:
            # A command whose working directory is this folder would move along, and reach the state by `..`.
            if self._linked(keeper):
                return
        elif keeper is not None and has_room:
            self.kept = keeper.new_name()
            self.steps = [restoring(path, self.kept, None, self.bytes)]
            return
        if keeper is not None and self.before.type == "file" and self._copied(keeper):
            return
        self.result.is_undoable = False
        self.aside = temporary_name()
        self.leave(path.parent.child(self.aside))

    def _is_in_use(self) -> bool:
        """Whether a program may have the file open, and so could rewrite what is kept of it."""
        return SHOWN.has(f"{descriptor_path(self.place.folder).rstrip('/')}/{self.place.name}")

    def _copied_tree(self, keeper: Keeper) -> bool:
        return self.bytes <= MAX_COPIED and self._linked(keeper, copies_files=True)

    def _linked(self, keeper: Keeper, *, copies_files: bool = False) -> bool:
        """Store it as hard links, or copies, in newly created folders, and empty the old ones afterwards."""
        copy, place = keeper.new_name(), self.place
        try:
            link_tree(place.folder, place.name, keeper.folder, copy, self.area.halted, copies_files=copies_files)
        except OSError:
            with suppress(FileNotFoundError):
                remove_tree(keeper.folder, copy)
            return False
        self._put_aside(copy)
        return True

    def _copied(self, keeper: Keeper) -> bool:
        opened = os.open(self.place.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.place.folder)
        try:
            copy = keep_file(keeper, opened, self.area.halted, by_link=False)
        finally:
            os.close(opened)
        if copy is None:
            return False
        self._put_aside(copy)
        return True

    def _put_aside(self, copy: str) -> None:
        self.aside = temporary_name()
        self.leave(self.place.path.parent.child(self.aside))
        self.steps = [restoring(self.place.path, copy, None, self.bytes)]

    def _is_kept(self, keeper: Keeper, kept: str) -> bool:
        place = self.place
        try:
            os.rename(place.name, kept, src_dir_fd=place.folder, dst_dir_fd=keeper.folder)
            self._refuse_swapped(keeper, kept)
            return True
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        # The same file system mounted twice: a rename across mounts fails, so the removal is permanent.
        self.kept, self.aside, self.result.is_undoable = None, temporary_name(), False
        return False

    def _refuse_swapped(self, keeper: Keeper, kept: str) -> None:
        """Restore what was renamed when it is not what was inspected: the names were swapped in between."""
        taken = os.stat(kept, dir_fd=keeper.folder, follow_symlinks=False)
        if self.before is None or taken.st_ino == self.before.inode:
            return
        rename_new(keeper.folder, kept, self.place.folder, self.place.name)
        shown = self.change.path.shown
        raise Conflict(f"{shown} was changed by something else just now.", path=shown)

    def _remove_empty(self) -> None:
        try:
            os.rmdir(self.place.name, dir_fd=self.place.folder)
            self.result.is_confirmed = self.place.stat() is None
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ENOENT):
                raise
            self.result.action = "unchanged"
            self.result.is_confirmed = True
            if error.errno != errno.ENOENT:
                self.result.warnings.append(f"{self.change.path.shown} is not empty and was left.")


class StagedRestore(Staged):
    """A restore of something stored to its name."""

    def __init__(self, place: OpenedParent, area: StagingArea, change: Restore) -> None:
        super().__init__(place, Changed(change.path, "created"))
        self.area = area
        self.change = change
        self.before: Stat | None = None
        self.kept: str | None = None
        """The present content, stored so that this change can be reverted too."""
        self.copy: str | None = None
        # A batch of ten thousand holds one descriptor each: a second one is needed only where folders are made first.
        self.staging = os.dup(place.folder) if place.missing else place.folder
        self._owns_staging = bool(place.missing)
        self.is_in_place = False

    def prepare(self) -> None:
        change, keeper = self.change, self._keeper()
        if os.path.basename(change.kept) != change.kept or change.kept in ("", ".", ".."):
            raise InvalidRequest("What was kept has a plain name.", path=change.path.shown)
        try:
            what = stat_of(os.stat(change.kept, dir_fd=keeper.folder, follow_symlinks=False))
        except FileNotFoundError:
            raise NotFound(f"What {change.path.shown} was is not kept any more.", path=change.path.shown) from None
        self.has_tree = what.type == "directory"
        is_vacated = (change.path.root, change.path.parts) in self.area.vacated
        self.before = before = None if is_vacated else self.place.stat()
        is_expected = before is None if change.expect is None else change.expect.fits(before)
        if not is_expected:
            raise Conflict(f"{change.path.shown} changed since.", path=change.path.shown)
        if before is not None:
            self.result.action = "modified"
            self._keep_present()
        mark = what.mark if what.type != "directory" else self._scanned(keeper.folder, change.kept, what)
        if what.device != _device(self.staging) or self.area.opener.roots.surround_state:
            # Where the state lies in a root, nothing is moved between the two. Moved back, when a later change fails, it
            # would bring along a command that has entered it meanwhile, or another folder put in its place.
            mark = self._stage_copy(keeper, what)
        if self.kept is not None and before is not None:
            self.steps = [restoring(self.place.path, self.kept, mark, before.size)]
        else:
            self.steps = [removing(self.place.path, mark), *self.unmaking_steps()]
        self.inode = mark.inode

    def commit(self) -> None:
        self.make_missing()
        place = self.place
        if not is_same(place, self.before):
            raise Conflict(
                f"{self.change.path.shown} was changed by something else just now.", path=self.change.path.shown
            )
        folder, name = (self._keeper().folder, self.change.kept) if self.copy is None else (self.staging, self.copy)
        with self.unseen():
            if self.before is None:
                rename_new(folder, name, place.folder, place.name)
            else:
                os.rename(name, place.name, src_dir_fd=folder, dst_dir_fd=place.folder)
        self.is_in_place = True
        now = place.stat()
        self.result.is_confirmed = now is not None and now.inode == self.inode

    def undo(self) -> None:
        place, keeper = self.place, self._keeper()
        if self.is_in_place:
            folder, name = (keeper.folder, self.change.kept) if self.copy is None else (self.staging, self.copy)
            rename_new(place.folder, place.name, folder, name)
            if self.kept is not None:
                rename_new(keeper.folder, self.kept, place.folder, place.name)
            self.is_in_place = False
        self.unmake()

    @property
    def has_more(self) -> bool:
        return self.copy is not None and self.is_in_place

    def finish(self) -> None:
        """Remove the stored original after a copy of it was restored."""
        with suppress(FileNotFoundError):
            remove_tree(self._keeper().folder, self.change.kept)

    def close(self) -> None:
        if not self.is_in_place:
            drop_kept(self.area.keeper, self.kept)
            if self.copy is not None:
                try:
                    remove_tree(self.staging, self.copy)
                except FileNotFoundError:
                    pass
        if self._owns_staging:
            os.close(self.staging)
        super().close()

    def _keeper(self) -> Keeper:
        if self.area.keeper is None:
            raise InvalidRequest("Nothing can be put back without the journal that kept it.")
        return self.area.keeper

    def _keep_present(self) -> None:
        opened = os.open(self.place.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.place.folder)
        try:
            self.kept = keep_file(self.area.keeper, opened, self.area.halted)
        finally:
            os.close(opened)
        self.result.is_undoable = self.kept is not None

    def _scanned(self, folder: int, name: str, what: Stat) -> Mark:
        opened = os.open(name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            scan = scan_tree(opened, judge=self._note_closed, halted=self.area.halted)
        finally:
            os.close(opened)
        self.result.entries = scan.entries
        return Mark(what.device, what.inode, scan.bytes, scan.newest_ns)

    def _note_closed(self, below: tuple[str, ...], _: bool) -> bool:
        self.holds_closed = self.holds_closed or is_closed(self.place.path, below)
        return True

    def _stage_copy(self, keeper: Keeper, what: Stat) -> Mark:
        """Prepare a copy beside the destination: hard links of its files, or their bytes on another file system."""
        name = temporary_name()
        self.copy = name
        above = self.place.path.parts[: len(self.place.path.parts) - 1 - len(self.place.missing)]
        self.leftovers.append({"root": self.place.path.root, "path": [*above, name]})
        try:
            link_tree(keeper.folder, self.change.kept, self.staging, name, self.area.halted)
        except OSError:
            with suppress(FileNotFoundError):
                remove_tree(self.staging, name)
            self._copy_bytes(keeper, what, name)
        made = stat_of(os.stat(name, dir_fd=self.staging, follow_symlinks=False))
        return made.mark if made.type != "directory" else self._scanned(self.staging, name, made)

    def _copy_bytes(self, keeper: Keeper, what: Stat, name: str) -> None:
        if what.type == "directory":
            os.mkdir(name, dir_fd=self.staging)
            self._copy_folder(keeper, name)
            return
        source = os.open(self.change.kept, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=keeper.folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        made = os.open(name, flags, 0o600, dir_fd=self.staging)
        try:
            copy_bytes(source, made, what.size, self.area.halted)
            os.fchmod(made, what.mode & 0o777)
            os.utime(made, ns=(what.modified_ns, what.modified_ns))
            sync(made)
        finally:
            os.close(source)
            os.close(made)

    def _copy_folder(self, keeper: Keeper, name: str) -> None:
        source = os.open(self.change.kept, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=keeper.folder)
        made = os.open(name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.staging)
        try:
            copy_tree(source, scan_tree(source, halted=self.area.halted, keep_names=True), made, self.area.halted)
        finally:
            os.close(source)
            os.close(made)


def _device(folder: int) -> int:
    return os.fstat(folder).st_dev
