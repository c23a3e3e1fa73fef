"""Making folders, moving a name, and copying a folder."""

from collections.abc import Callable

from computer_linker.computer.facets.files import Changed, Copy, Mark, Move, Stat
from computer_linker.computer.local.portable.files.judge import is_closed, may_copy, may_move
from computer_linker.computer.local.portable.files.keep import (
    drop_kept,
    keep_file,
    moving,
    removing,
    restoring,
)
from computer_linker.computer.local.portable.files.open import FOLDER, READ, OpenedParent
from computer_linker.computer.local.portable.files.stage import (
    Staged,
    StagingArea,
    is_same,
    rename_new,
    sweep,
    temporary_name,
)
from computer_linker.computer.local.portable.files.trees import (
    copy_tree,
    leave_out_twins,
    refuse_too_large,
    remove_tree,
    scan_tree,
)
from computer_linker.errors import AlreadyExists, Conflict, InvalidRequest, LinkError, NotFound
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import refuse_held
from computer_linker.system import descriptor_path, os


class StagedMove(Staged):
    """A rename."""

    def __init__(self, source: OpenedParent, place: OpenedParent, area: StagingArea, change: Move) -> None:
        super().__init__(place, Changed(change.path, "moved"))
        self.source = source
        self.area = area
        self.change = change
        self.before: Stat | None = None
        self.over: Stat | None = None
        self.kept: str | None = None
        self.is_in_place = False
        self.folder = ""
        """The path of the folder that is moved, whose content was judged."""
        self.disturbance: LinkError | None = None

    @property
    def places(self) -> tuple[OpenedParent, ...]:
        return (self.source, self.place)

    def notice(self, other: Staged) -> None:
        for place in other.places:
            path = "/".join((descriptor_path(place.folder).rstrip("/"), *place.missing, place.name))
            if not path.startswith(f"{self.folder}/") or place.stat() is not None:
                continue
            below = tuple(path[len(self.folder) + 1 :].split("/"))
            try:
                if other.has_tree:
                    raise self._changed()
                for size in range(1, len(below) + 1):
                    self._judge(below[:size], True)
            except LinkError as error:
                self.disturbance = error

    def prepare(self) -> None:
        change = self.change
        self.before = before = self.source.stat()
        if before is None:
            raise NotFound(f"{change.path.shown} does not exist.", path=change.path.shown)
        if change.expect is not None and not change.expect.fits(before):
            raise Conflict(f"{change.path.shown} changed since.", path=change.path.shown)
        _refuse_inside_itself(self.source.path, self.place.path)
        is_vacated = (change.destination.root, change.destination.parts) in self.area.vacated
        self.over = None if is_vacated else self.place.stat()
        if self.over is not None:
            self._overwrite(self.over)
        if before.type == "directory":
            self._judge_inside()
        mark = before.mark if before.type != "directory" else Mark(before.device, before.inode)
        self.steps = [moving(self.place.path, self.source.path, mark)]
        if self.kept is not None and self.over is not None:
            self.steps.append(restoring(self.place.path, self.kept, None, self.over.size))
        self.steps += self.unmaking_steps()

    def commit(self) -> None:
        self.make_missing()
        if self.disturbance is not None:
            raise self.disturbance
        if not is_same(self.source, self.before):
            raise self._changed()
        source, place = self.source, self.place
        with self.unseen():
            if self.over is None:
                rename_new(source.folder, source.name, place.folder, place.name)
            else:
                os.rename(source.name, place.name, src_dir_fd=source.folder, dst_dir_fd=place.folder)
        self.is_in_place = True
        now = place.stat()
        is_there = now is not None and self.before is not None and now.inode == self.before.inode
        self.result.is_confirmed = is_there and source.stat() is None

    def undo(self) -> None:
        if self.is_in_place:
            source, place = self.source, self.place
            rename_new(place.folder, place.name, source.folder, source.name)
            if self.kept is not None and self.area.keeper is not None:
                rename_new(self.area.keeper.folder, self.kept, place.folder, place.name)
        self.unmake()

    def close(self) -> None:
        self.area.judged.discard(self)
        self.source.close()
        if not self.is_in_place:
            drop_kept(self.area.keeper, self.kept)
        super().close()

    def _changed(self) -> Conflict:
        shown = self.change.path.shown
        return Conflict(f"{shown} was changed by something else just now.", path=shown)

    def _overwrite(self, over: Stat) -> None:
        shown = self.change.destination.shown
        if not self.change.overwrite:
            raise AlreadyExists(f"{shown} already exists. Use overwrite to replace a file.", path=shown)
        if over.type != "file" or (self.before is not None and self.before.type == "directory"):
            raise Conflict(f"{shown} exists, and only a file can be replaced by a file.", path=shown)
        self.kept = _keep_place(self.place, self.area)
        self.result.is_undoable = self.kept is not None

    def _judge_inside(self) -> None:
        source = self.source
        refuse_held(source.path, "moved")
        self.has_tree = True
        self.folder = f"{descriptor_path(source.folder).rstrip('/')}/{source.name}"
        self.area.judged.add(self)
        opened = os.open(source.name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source.folder)
        try:
            scan = scan_tree(opened, judge=self._judge, halted=self.area.halted)
        finally:
            os.close(opened)
        self.result.entries = scan.entries

    def _judge(self, below: tuple[str, ...], _: bool) -> bool:
        source, place = self.source.path, self.place.path
        # Under another name in the same folder, the mounts that close names in it still do.
        stays = source.root == place.root and source.parts[:-1] == place.parts[:-1]
        self.holds_closed = self.holds_closed or (not stays and is_closed(source, below))
        return may_move(source, place, self.area.opener.roots.hold(source.root), below)


class StagedTreeCopy(Staged):
    """A folder copied beside its destination, then renamed into place."""

    def __init__(self, place: OpenedParent, area: StagingArea, change: Copy) -> None:
        super().__init__(place, Changed(change.path, "copied"))
        self.area = area
        self.change = change
        self.has_tree = True
        self.temporary = temporary_name()
        self.staging = os.dup(place.folder)
        self.is_in_place = False

    def prepare(self, source: int, real: RootedPath) -> None:
        change = self.change
        _refuse_inside_itself(real, self.place.path)
        if self.place.stat() is not None:
            shown = change.destination.shown
            raise AlreadyExists(f"{shown} already exists; a folder is never copied over something.", path=shown)
        root = self.area.opener.roots.hold(real.root)
        judge: Callable[[tuple[str, ...], bool], bool] = lambda below, _: may_copy(real, self.place.path, root, below)  # noqa: E731
        scan = scan_tree(source, judge=judge, halted=self.area.halted, keep_names=True)
        if scan.shared:
            leave_out_twins(scan, self.area.opener.closed_at_the_top(real))
        refuse_too_large(scan.bytes, change.path)
        self.area.room.check(self.place.folder, change.destination, scan.bytes)
        sweep(self.staging, self.area.swept)
        os.mkdir(self.temporary, dir_fd=self.staging)
        opened = os.open(self.temporary, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.staging)
        try:
            copy_tree(source, scan, opened, self.area.halted)
            made = scan_tree(opened, halted=self.area.halted)
            found = os.fstat(opened)
        finally:
            os.close(opened)
        self.result.entries, self.result.size = made.entries, made.bytes
        if scan.left_out:
            self.result.warnings.append(f"{scan.left_out} entries that the scope's rules close were not copied.")
        if scan.shared:
            self.result.warnings.append(
                f"{len(scan.shared)} of the files are hardlinks: other names lead to them, and some may lie outside the scope."
            )
        if scan.odd:
            self.result.warnings.append(f"{scan.odd} links and special files were not copied.")
        mark = Mark(found.st_dev, found.st_ino, made.bytes, made.newest_ns)
        self.steps = [removing(self.place.path, mark), *self.unmaking_steps()]
        above = self.place.path.parts[: len(self.place.path.parts) - 1 - len(self.place.missing)]
        self.leave(RootedPath(real.root, (*above, self.temporary), real.rules, real.prefix))
        self.inode = found.st_ino

    def commit(self) -> None:
        self.make_missing()
        rename_new(self.staging, self.temporary, self.place.folder, self.place.name)
        self.is_in_place = True
        now = self.place.stat()
        self.result.is_confirmed = now is not None and now.inode == self.inode

    def undo(self) -> None:
        if self.is_in_place:
            rename_new(self.place.folder, self.place.name, self.staging, self.temporary)
            self.is_in_place = False
        self.unmake()

    def close(self) -> None:
        if not self.is_in_place:
            try:
                remove_tree(self.staging, self.temporary)
            except FileNotFoundError:
                pass
        os.close(self.staging)
        super().close()


def _keep_place(place: OpenedParent, area: StagingArea) -> str | None:
    opened = os.open(place.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.folder)
    try:
        return keep_file(area.keeper, opened, area.halted)
    finally:
        os.close(opened)


def _refuse_inside_itself(source: RootedPath, destination: RootedPath) -> None:
    same_root = source.root == destination.root
    if same_root and destination.parts[: len(source.parts)] == source.parts:
        raise InvalidRequest(f"{source.shown} cannot go into itself.", path=source.shown)
