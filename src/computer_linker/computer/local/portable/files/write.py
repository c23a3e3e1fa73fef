"""Writing a file: a temporary in the held parent, made durable, then renamed into place."""

import errno
import hashlib
from array import array
from collections.abc import Iterable
from contextlib import suppress

from computer_linker.computer.facets.files import Changed, Stat, Write
from computer_linker.computer.local.portable.files.keep import drop_kept, keep_file, removing, restoring
from computer_linker.computer.local.portable.files.open import READ, OpenedParent, refuse_irregular, stat_of
from computer_linker.computer.local.portable.files.read import Survey, key_of, survey
from computer_linker.computer.local.portable.files.stage import (
    Staged,
    StagingArea,
    is_same,
    rename_new,
    sweep,
    temporary_name,
)
from computer_linker.computer.local.portable.files.trees import refuse_too_large, write_all
from computer_linker.errors import Aborted, AlreadyExists, Conflict, InvalidRequest
from computer_linker.model.paths import RootedPath
from computer_linker.system import attributes, link_descriptor, os, set_attribute, sync

_CHUNK = 1 << 20
_REMEMBERED = 1 << 16
"""The survey of a file of one block is cached after the write, so that the next read need not digest it."""


class StagedWrite(Staged):
    """A write of new content to a name."""

    def __init__(self, place: OpenedParent, area: StagingArea, change: Write) -> None:
        super().__init__(place, Changed(change.path, "created"))
        self.area = area
        self.change = change
        self.before: Stat | None = None
        self.old = -1
        self.new = -1
        self.named: str | None = None
        """The temporary's name while it has one."""
        self.named_in = -1
        self.temporary = ""
        self.needs_spare = False
        self.spare: str | None = None
        self.kept: str | None = None
        self.is_in_place = False
        self.newlines: array[int] | None = None

    def prepare(self, *, needs_spare: bool) -> None:
        """Write the temporary; the name itself is not touched."""
        self.needs_spare = needs_spare
        self._inspect()
        self._open_temporary()
        self._fill()
        self._copy_mode()

    def settle(self) -> None:
        """Make the temporary durable, and store what it will replace."""
        sync(self.new)
        if self.old >= 0:
            self.kept = keep_file(self.area.keeper, self.old, self.area.halted)
        if self.area.halted():
            raise Aborted("The write was stopped before anything was changed.")
        self.temporary = self.named or temporary_name()
        self._note_steps()

    def refresh(self) -> None:
        """Replace what is there by now: an undo goes back to that, not to what was there when this was prepared."""
        missing = self.place.missing
        if self._is_conditional() or self.change.must_be_new:
            return
        self.enter_made()
        if is_same(self.place, self.before) and self.place.missing == missing:
            return
        drop_kept(self.area.keeper, self.kept)
        if self.old >= 0:
            os.close(self.old)
        is_copy = self.result.action == "copied"
        self.kept, self.old, self.steps, self.result.action = None, -1, [], "created"
        self._inspect()
        self.result.action = "copied" if is_copy else self.result.action
        if self.change.append:
            self._fill_again()
        self._copy_mode()
        if self.old >= 0:
            self.kept = keep_file(self.area.keeper, self.old, self.area.halted)
        self._note_steps()

    def _fill_again(self) -> None:
        if not isinstance(self.change.content, bytes):
            raise Conflict(
                f"{self.change.path.shown} was changed by something else just now.", path=self.change.path.shown
            )
        os.ftruncate(self.new, 0)
        os.lseek(self.new, 0, os.SEEK_SET)
        self._fill()
        sync(self.new)

    def commit(self) -> None:
        self.make_missing()
        if self._is_conditional() and not is_same(self.place, self.before):
            raise Conflict(
                f"{self.change.path.shown} was changed by something else just now.", path=self.change.path.shown
            )
        if self.spare is not None:
            link_descriptor(self.old, self.place.folder, self.spare)
        if self._is_same():
            self.result.is_same = True
            self.result.warnings.append(f"{self.change.path.shown} had this content already: only its time changed.")
        self._put()
        self.is_in_place = True
        self._read_back()

    def _is_same(self) -> bool:
        """Whether it replaces a file by an equal one. Long files are not compared."""
        if self.old < 0 or self.before is None or self.before.size != self.result.size or self.result.size > _CHUNK:
            return False
        is_mode = os.fstat(self.new).st_mode & 0o777 == self.before.mode & 0o777
        return is_mode and os.pread(self.old, _CHUNK, 0) == os.pread(self.new, _CHUNK, 0)

    def undo(self) -> None:
        place = self.place
        now = place.stat()
        if self.is_in_place and now is not None and now.inode == os.fstat(self.new).st_ino:
            if self.before is None:
                os.unlink(place.name, dir_fd=place.folder)
            elif self.spare is not None:
                os.rename(self.spare, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
                self.spare = None
        self.unmake()

    def tidy(self) -> None:
        for folder, name in ((self.named_in, self.named), (self.place.folder, self.spare)):
            if name is not None and folder >= 0:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
        self.named = self.spare = None

    def close(self) -> None:
        self.tidy()
        for descriptor in (self.old, self.new, self.named_in):
            if descriptor >= 0:
                os.close(descriptor)
        self.old = self.new = self.named_in = -1
        if not self.is_in_place:
            drop_kept(self.area.keeper, self.kept)
        super().close()

    def _inspect(self) -> None:
        """Inspect the current file, and hold it open."""
        change, place = self.change, self.place
        self.before = before = place.stat()
        if before is None:
            if change.if_sha256 is not None or change.expect is not None:
                raise Conflict(f"{change.path.shown} does not exist any more.", path=change.path.shown)
            return
        if change.must_be_new:
            raise AlreadyExists(f"{change.path.shown} already exists.", path=change.path.shown)
        if before.type != "file":
            kind = "a folder" if before.type == "directory" else "not a regular file"
            raise InvalidRequest(f"{change.path.shown} is {kind}, so it cannot be written.", path=change.path.shown)
        self.result.action = "modified"
        if not os.access(place.name, os.W_OK, dir_fd=place.folder, effective_ids=True):
            # A rename would replace it anyway, but its owner made it read-only on purpose.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        try:
            self.old = os.open(place.name, READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.folder)
        except PermissionError:
            # A file this user may replace but not read: only checks of its content are impossible.
            if change.append or change.if_sha256 is not None:
                raise
            return
        found = os.fstat(self.old)
        refuse_irregular(found.st_mode, change.path)
        self.before = stat_of(found)
        self._compare(found)

    def _compare(self, found: os.stat_result) -> None:
        change = self.change
        if change.expect is not None and not change.expect.fits(self.before):
            raise Conflict(f"{change.path.shown} changed since it was read.", path=change.path.shown)
        if change.if_sha256 is None:
            return
        known = self.area.memory.get(key_of(found)) or survey(self.old, found.st_size, self.area.halted)
        if known.sha256 != change.if_sha256.lower():
            raise Conflict(
                f"{change.path.shown} is not the version that `ifSha256` names. Read it again.",
                path=change.path.shown,
                sha256=known.sha256,
            )

    def _open_temporary(self) -> None:
        folder = self.place.folder
        try:
            # O_TMPFILE has no name: nothing can be planted, and nothing is left behind when the service is killed.
            self.new = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666, dir_fd=folder)
            return
        except AttributeError:
            pass
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
                raise
        sweep(folder, self.area.swept)
        name = temporary_name()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self.new = os.open(name, flags, 0o666, dir_fd=folder)
        self.named, self.named_in = name, os.dup(folder)

    def _fill(self) -> None:
        digest = hashlib.sha256()
        size, only = 0, b""
        is_streamed = not isinstance(self.change.content, bytes)
        for data in self._pieces():
            if self.area.halted():
                raise Aborted("The write was stopped before anything was changed.")
            if is_streamed:
                self.area.room.check_growing(self.place.folder, self.change.path, size, len(data))
            write_all(self.new, data)
            digest.update(data)
            size += len(data)
            only = data
        self.result.size = size
        self.result.sha256 = digest.hexdigest()
        if len(only) == size <= _REMEMBERED:
            self.newlines = array("Q", [only.count(b"\n")] if size else [])

    def _pieces(self) -> Iterable[bytes]:
        if self.change.append and self.before is not None:
            refuse_too_large(self.before.size, self.change.path)
        if self.change.append and self.old >= 0:
            at, size = 0, self.before.size if self.before else 0
            while at < size and (data := os.pread(self.old, min(_CHUNK, size - at), at)):
                yield data
                at += len(data)
        content = self.change.content
        if isinstance(content, bytes):
            yield content
        else:
            yield from content()

    def _copy_mode(self) -> None:
        """Copy the old file's mode and owner to the new one. Set-user-id bits are dropped when content changes."""
        mode = self.before.mode & 0o777 if self.before else os.fstat(self.new).st_mode & 0o777
        if self.change.is_executable is not None:
            mode = mode | (mode & 0o444) >> 2 if self.change.is_executable else mode & ~0o111
        now = os.fstat(self.new)
        if mode != now.st_mode & 0o777:
            os.fchmod(self.new, mode)
        if self.old < 0:
            return
        was = os.fstat(self.old)
        if (was.st_uid, was.st_gid) != (now.st_uid, now.st_gid):
            try:
                os.fchown(self.new, was.st_uid, was.st_gid)
            except PermissionError:
                self.result.warnings.append(f"{self.change.path.shown} now belongs to the service's user.")
        _copy_attributes(self.old, self.new)

    def _note_steps(self) -> None:
        path = self.place.path
        if not self.leftovers:
            above = path.parts[: len(path.parts) - 1 - len(self.place.missing)] if self.named else path.parts[:-1]
            self.leave(RootedPath(path.root, (*above, self.temporary), path.rules, path.prefix))
        after = stat_of(os.fstat(self.new)).mark
        if self.before is None:
            self.steps = [removing(path, after), *self.unmaking_steps()]
            return
        if self.kept is not None:
            self.steps = [restoring(path, self.kept, after, self.before.size)]
        else:
            self.result.is_undoable = False
        if self.needs_spare:
            self.spare = temporary_name()
            self.leave(path.parent.child(self.spare))

    def _is_conditional(self) -> bool:
        return self.change.if_sha256 is not None or self.change.expect is not None

    def _put(self) -> None:
        place = self.place
        if self.before is None:
            try:
                self._put_new()
                return
            except FileExistsError:
                if self.change.must_be_new:
                    raise
        if self.named is None:
            link_descriptor(self.new, place.folder, self.temporary)
            self.named, self.named_in = self.temporary, os.dup(place.folder)
        os.rename(self.named, place.name, src_dir_fd=self.named_in, dst_dir_fd=place.folder)
        self.named = None

    def _put_new(self) -> None:
        if self.named is None:
            link_descriptor(self.new, self.place.folder, self.place.name)
        else:
            rename_new(self.named_in, self.named, self.place.folder, self.place.name)
            self.named = None

    def _read_back(self) -> None:
        try:
            found = os.stat(self.place.name, dir_fd=self.place.folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        self.result.is_confirmed = found.st_ino == os.fstat(self.new).st_ino and found.st_size == self.result.size
        if self.result.is_confirmed and self.newlines is not None and self.result.sha256:
            self.area.memory.put(key_of(found), Survey(self.result.sha256, self.newlines))


def _copy_attributes(source: int, target: int) -> None:
    """Copy user extended attributes and the access list, where the file system supports them."""
    with suppress(OSError):
        for name, value in attributes(source, with_access_list=True).items():
            with suppress(OSError):
                set_attribute(target, name, value)
