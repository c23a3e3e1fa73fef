"""Names in open folders: what they are, what they contain, and what is below them. No link is followed."""

import stat
from collections.abc import Iterator
from hashlib import sha256
from typing import Literal, NamedTuple, Self

from computer_linker.errors import LimitExceeded
from computer_linker.system import attributes, os

Parts = tuple[str, ...]
Kind = Literal["file", "directory", "symlink", "other"]
OVERLAY_ATTRIBUTES = "user.overlay."
_MAX_DEPTH = 200
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


_NEEDED: dict[Kind, int] = {"file": 0o400, "directory": 0o500, "symlink": 0, "other": 0}


def is_open(entry: Entry | None) -> bool:
    """True for what its mode lets its owner read; the rest has to be tried."""
    return entry is None or (needed := _NEEDED[entry.kind]) & entry.mode == needed


def is_unreadable(folder: int, parts: Parts, entry: Entry | None) -> bool:
    """True for a file or folder that this user may not read."""
    if entry is None or is_open(entry):
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


class Parents:
    """Opens the folders above names below one folder; the last one stays open for the next name in it."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._last: Parts | None = None
        self._opened = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._last is not None:
            os.close(self._opened)

    def of(self, parts: Parts) -> int:
        """The folder above a name, until the next call."""
        if parts[:-1] != self._last:
            opened = open_parent(self._folder, parts)
            self.__exit__()
            self._last, self._opened = parts[:-1], opened
        return self._opened


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
