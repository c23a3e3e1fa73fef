"""What a view would change: its overlay's upper folder compared with the real folder."""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal, NamedTuple

from computer_linker.errors import LimitExceeded
from computer_linker.system import attributes

Parts = tuple[str, ...]
Kind = Literal["file", "directory", "symlink", "other"]
Action = Literal["added", "changed", "removed", "renamed"]
MAX_CHANGES = 100_000
_MAX_DEPTH = 200
_OPAQUE = "user.overlay.opaque"
OVERLAY_ATTRIBUTES = "user.overlay."
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CHUNK = 1 << 20


class Entry(NamedTuple):
    """One name as it is, in the real folder or in the view."""

    kind: Kind
    size: int
    mode: int
    modified_ns: int
    changed_ns: int
    device: int
    inode: int
    owner: tuple[int, int] = (0, 0)
    """User and group."""
    links: int = 1
    """How many names a file has."""


@dataclass(frozen=True, slots=True)
class ViewChange:
    """One name that differs. A removed folder stands for everything in it; of an added one, each name is a change."""

    parts: Parts
    action: Action
    before: Entry | None
    after: Entry | None
    is_conflict: bool = False
    """The real folder changed here since the view was made, or has more than the program could see."""
    source: Parts | None = None
    """The former name of a renamed file."""
    is_unreadable: bool = False
    """This user may not read it, in the view or in the folder: what it contains is not known."""


@dataclass(slots=True)
class Comparison:
    """Compares one root of a view with its folder; both are open descriptors, and no link is followed."""

    upper: int
    lower: int
    base_ns: int
    changes: list[ViewChange] = field(default_factory=list)

    def run(self) -> list[ViewChange]:
        """All changes, ordered by path; renames are recognised by their content."""
        self._folder(self.upper, self.lower, ())
        self.changes.sort(key=lambda change: change.parts)
        return self._with_renames()

    def _folder(self, upper: int, lower: int | None, parts: Parts, *, is_anew: bool = False) -> None:
        """Compare a folder; `is_anew` when one above it was removed and made anew, so that nothing of the real one shows."""
        refuse_deep(parts)
        names = os.listdir(upper)
        # Only the outermost new folder has the mark of overlayfs.
        is_anew = is_anew or _is_opaque(upper)
        for name in names:
            self._name(upper, lower, name, (*parts, name), is_anew=is_anew)
        if lower is not None and is_anew:
            # What the new one lacks is gone.
            for name in set(os.listdir(lower)) - set(names):  # noqa: PTH208  # an open folder has no path
                self._add((*parts, name), "removed", entry_of(lower, name), None, lower)

    def _name(self, upper: int, lower: int | None, name: str, parts: Parts, *, is_anew: bool) -> None:
        found = os.stat(name, dir_fd=upper, follow_symlinks=False)
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
            # A whiteout: overlayfs marks a removed name with it, also one that was made in the view.
            before = None if lower is None else entry_of(lower, name)
            if before is not None:
                self._add(parts, "removed", before, None, lower)
            return
        self._compared(upper, lower, name, found, parts, is_anew=is_anew)

    def _compared(
        self, upper: int, lower: int | None, name: str, found: os.stat_result, parts: Parts, *, is_anew: bool
    ) -> None:
        before, after = None if lower is None else entry_of(lower, name), as_entry(found)
        if after.kind == "directory" and before is not None and before.kind == "directory":
            is_closed = self._is_closed(parts, before, after)
            if is_closed or self._is_folder_changed(upper, lower, name, before, after):
                self._add(parts, "changed", before, after)
            if not is_closed:
                self._both(upper, lower, name, parts, is_anew=is_anew)
        elif after.kind == "directory":
            self._add(parts, "added" if before is None else "changed", before, after, lower)
            if not self._is_closed(parts, None, after):
                self._both(upper, None, name, parts, is_anew=is_anew)
        elif before is None or before.kind == "directory":
            self._add(parts, "added" if before is None else "changed", before, after, lower)
        elif self._is_closed(parts, before, after) or self._differs(upper, lower, name, before, after):
            self._add(parts, "changed", before, after)

    def _is_folder_changed(self, upper: int, lower: int | None, name: str, before: Entry, after: Entry) -> bool:
        """A folder's mode, attributes, or a time that a program set: others change with the names in it."""
        if after.mode != before.mode or self.is_set_time(before, after):
            return True
        return after.changed_ns > self.base_ns and attributes_of(upper, name) != attributes_of(lower, name)

    def is_set_time(self, before: Entry, after: Entry) -> bool:
        """True when a folder has a modification time that does not come from a change of the names in it."""
        is_other = after.modified_ns != before.modified_ns
        return is_other and (after.modified_ns < self.base_ns or after.modified_ns > after.changed_ns)

    def _is_closed(self, parts: Parts, before: Entry | None, after: Entry | None) -> bool:
        """True for what this user may not read, in the folder or in the view."""
        return _is_unreadable(self.lower, parts, before) or _is_unreadable(self.upper, parts, after)

    def _both(self, upper: int, lower: int | None, name: str, parts: Parts, *, is_anew: bool) -> None:
        """Compare a folder of the view with the real one, or with none."""
        with contextlib.ExitStack() as opened:
            inner: list[int] = []
            for folder in (upper, lower):
                if folder is not None:
                    inner.append(os.open(name, _FOLDER, dir_fd=folder))
                    opened.callback(os.close, inner[-1])
            self._folder(inner[0], inner[1] if len(inner) > 1 else None, parts, is_anew=is_anew)

    def _differs(self, upper: int, lower: int | None, name: str, before: Entry, after: Entry) -> bool:
        """A program that opened a file for writing and wrote nothing left a copy, which is no change."""
        facts = (before.kind, before.mode, before.size, before.modified_ns, before.owner)
        if facts != (after.kind, after.mode, after.size, after.modified_ns, after.owner):
            return True
        if after.links not in (1, before.links):
            # It has another name in the view, which is a change of both.
            return True
        if after.kind == "symlink":
            return os.readlink(name, dir_fd=upper) != os.readlink(name, dir_fd=lower)
        if after.kind != "file":
            return False
        return digest_at(upper, name) != digest_at(lower, name) or attributes_of(upper, name) != attributes_of(
            lower, name
        )

    def _add(
        self, parts: Parts, action: Action, before: Entry | None, after: Entry | None, lower: int | None = None
    ) -> None:
        if len(self.changes) >= MAX_CHANGES:
            raise LimitExceeded(f"The view changes more than {MAX_CHANGES} names.", limit=MAX_CHANGES)
        is_conflict = before is not None and before.changed_ns > self.base_ns
        is_unreadable = self._is_closed(parts, before, after)
        if before is not None and before.kind == "directory" and lower is not None and not is_conflict:
            try:
                is_conflict = self._has_newer(lower, parts[-1], before)
            except PermissionError:
                is_unreadable = True
        self.changes.append(ViewChange(parts, action, before, after, is_conflict, is_unreadable=is_unreadable))

    def _has_newer(self, lower: int, name: str, before: Entry) -> bool:
        """True when a folder has something newer than the view, or that no program in the view could see."""
        # A program in the view sees an empty folder where another file system is mounted: it removed nothing of that.
        device = os.fstat(self.lower).st_dev
        entries = (before, *(entry for _, entry in below(lower, name)))
        return any(entry.changed_ns > self.base_ns or entry.device != device for entry in entries)

    def _with_renames(self) -> list[ViewChange]:
        """A removed and an added file of the same content are one renamed file; small files only where they are alone."""
        gone: dict[tuple[int, str], list[ViewChange]] = {}
        for change in self.changes:
            if change.is_unreadable:
                continue
            if change.action == "removed" and change.before is not None and change.before.kind == "file":
                digest = digest_below(self.lower, change.parts)
                gone.setdefault((change.before.size, digest), []).append(change)
        if not gone:
            return self.changes
        renamed: dict[Parts, ViewChange] = {}
        sizes = {size for size, _ in gone}
        for change in self.changes:
            if change.action != "added" or change.after is None or change.after.kind != "file":
                continue
            if change.after.size not in sizes or change.is_unreadable:
                continue
            matches = gone.get((change.after.size, digest_below(self.upper, change.parts)))
            if matches:
                old = matches.pop(0)
                renamed[change.parts] = replace(change, action="renamed", source=old.parts, before=old.before)
                renamed[old.parts] = replace(old, source=old.parts)
        kept = (renamed.get(change.parts, change) for change in self.changes)
        return [change for change in kept if not (change.action == "removed" and change.source)]


def refuse_deep(parts: Parts) -> None:
    """Refuse a view that changes folders too deep for a descriptor to be open on each level."""
    if len(parts) > _MAX_DEPTH:
        raise LimitExceeded(f"The view has folders more than {_MAX_DEPTH} levels deep.")


def entry_of(folder: int, name: str) -> Entry | None:
    """The entry of a name in an open folder; None when there is none."""
    try:
        return as_entry(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def entry_below(folder: int, parts: Parts) -> Entry | None:
    """The entry of a name below an open folder, or of that; None when there is none, or no folder above it that is readable."""
    if not parts:
        return as_entry(os.fstat(folder))
    try:
        above = open_parent(folder, parts)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    try:
        return entry_of(above, parts[-1])
    finally:
        os.close(above)


def folders_in(folder: int, parts: Parts) -> list[str]:
    """The names of the folders in one below an open folder; none of one that this user may not read."""
    try:
        opened = open_parent(folder, (*parts, ""))
    except PermissionError:
        return []
    try:
        with os.scandir(opened) as found:
            return [each.name for each in found if each.is_dir(follow_symlinks=False)]
    finally:
        os.close(opened)


def below(folder: int, name: str) -> Iterator[tuple[Parts, Entry]]:
    """Everything inside a folder, by its path in it; parents first. Raises LimitExceeded where that is too deep."""
    try:
        opened = os.open(name, _FOLDER, dir_fd=folder)
    except NotADirectoryError:
        return
    try:
        yield from _inside(opened, ())
    finally:
        os.close(opened)


def _inside(opened: int, above: Parts) -> Iterator[tuple[Parts, Entry]]:
    refuse_deep(above)
    for name in sorted(os.listdir(opened)):
        entry = entry_of(opened, name)
        if entry is None:
            continue
        yield (*above, name), entry
        if entry.kind == "directory":
            inner = os.open(name, _FOLDER, dir_fd=opened)
            try:
                yield from _inside(inner, (*above, name))
            finally:
                os.close(inner)


_NEEDED = {"file": 0o400, "directory": 0o500}


def _is_unreadable(folder: int, parts: Parts, entry: Entry | None) -> bool:
    """True for a file or folder that this user may not read; tried only where its mode closes it to its owner."""
    if entry is None or entry.mode & 0o500 == 0o500:
        return False
    needed = _NEEDED.get(entry.kind, 0)
    if entry.mode & needed == needed:
        return False
    try:
        opened = open_file(folder, parts)
    except PermissionError:
        return True
    try:
        if entry.kind == "directory":
            os.stat(".", dir_fd=opened)
    except PermissionError:
        return True
    finally:
        os.close(opened)
    return False


def digest_at(folder: int | None, name: str) -> str:
    """The SHA-256 of a regular file in an open folder."""
    return _digest(os.open(name, _FILE, dir_fd=folder))


def _digest(opened: int) -> str:
    digest = sha256()
    try:
        while data := os.read(opened, _CHUNK):
            digest.update(data)
    finally:
        os.close(opened)
    return digest.hexdigest()


def attributes_of(folder: int | None, name: str) -> dict[str, bytes]:
    """The user's extended attributes of a file, without those of overlayfs."""
    opened = os.open(name, _FILE, dir_fd=folder)
    try:
        return attributes(opened, without=OVERLAY_ATTRIBUTES)
    finally:
        os.close(opened)


def attributes_below(folder: int, parts: Parts) -> dict[str, bytes]:
    """The same of a name below an open folder."""
    above = open_parent(folder, parts)
    try:
        return attributes_of(above, parts[-1])
    finally:
        os.close(above)


def digest_below(folder: int, parts: Parts) -> str:
    return _digest(open_file(folder, parts))


def open_parent(folder: int, parts: Parts) -> int:
    """Open the folder above a name, component by component without following links."""
    opened = os.open(".", _FOLDER, dir_fd=folder)
    for name in parts[:-1]:
        above = opened
        try:
            opened = os.open(name, _FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return opened


def open_folder(folder: int, name: str) -> int:
    """Open a folder in an open folder without following links."""
    return os.open(name, _FOLDER, dir_fd=folder)


def open_file(folder: int, parts: Parts) -> int:
    """Open a file below an open folder for reading, without following links."""
    above = open_parent(folder, parts)
    try:
        return os.open(parts[-1], _FILE, dir_fd=above)
    finally:
        os.close(above)


def _is_opaque(folder: int) -> bool:
    try:
        return os.getxattr(folder, _OPAQUE) == b"y"
    except OSError:
        return False


_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}


def as_entry(found: os.stat_result) -> Entry:
    mode = found.st_mode
    kind = _KINDS.get(mode & 0o170000, "other")
    links = 1 if kind == "directory" else found.st_nlink
    return tuple.__new__(
        Entry,
        (
            kind, found.st_size, mode & 0o7777, found.st_mtime_ns, found.st_ctime_ns, found.st_dev, found.st_ino,
            (found.st_uid, found.st_gid), links,
        ),
    )  # fmt: skip


def is_same_state(found: os.stat_result, entry: Entry) -> bool:
    """True while a name is what it was: the kernel sets the change time with every change."""
    return (found.st_ino, found.st_ctime_ns, found.st_size, found.st_mtime_ns, found.st_dev) == (
        entry.inode,
        entry.changed_ns,
        entry.size,
        entry.modified_ns,
        entry.device,
    )
