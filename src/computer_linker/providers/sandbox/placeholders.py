"""Empty folders and files that stand where a protected name is missing, so that a mount can close the name."""

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

_FOLDER_MODE, _FILE_MODE = 0o555, 0o444
_EMPTY = "empty"
_FILE_TIME = (0, 0)
"""No file of anybody's was last changed in 1970, so that ours can be told after a killed service."""
_Place = tuple[int, int]
Held = tuple[_Place, str]
"""Which folder (device and number) and which name in it."""
_Mark = tuple[int, int]
"""Its number, and when it was last changed: as long as both are the same it is ours, and empty."""
_NOT_OURS: _Mark = (0, 0)


@dataclass(slots=True)
class _Standing:
    mark: _Mark
    users: int = 0


@dataclass(slots=True)
class _Folder:
    fd: int
    names: int = 0


class Placeholders:
    """Counted by folder and name, since several commands may run in one root; the last one takes it away again.

    They are moved in from a store and back: making and removing them on a disk takes ten to a hundred times as long. Where
    the store lies on another disk they are made and removed all the same.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._store_fd: int | None = None
        self._free: dict[bool, list[tuple[str, _Mark]]] = {True: [], False: []}
        self._made = 0
        self._standing: dict[Held, _Standing] = {}
        self._folders: dict[_Place, _Folder] = {}

    @property
    def empty_file(self) -> str:
        """A file to mount over a name that programs read as a file; there once anything is held."""
        return str(self._store / _EMPTY)

    def hold(self, folder_fd: int, names: Iterable[str], files: Collection[str] = ()) -> list[Held]:
        """Put empty folders, or files, at missing names, and tell which stand: where nothing can be written none can."""
        found = os.fstat(folder_fd)
        place = (found.st_dev, found.st_ino)
        held: list[Held] = []
        for name in names:
            key = (place, name)
            standing = self._standing.get(key)
            if standing is None:
                mark = self._put(folder_fd, name, is_file=name in files)
                if mark is None:
                    continue
                standing = self._standing[key] = _Standing(mark)
                self._folder(place, folder_fd).names += 1
            standing.users += 1
            held.append(key)
        return held

    def let_go(self, held: list[Held]) -> None:
        """Take away what nobody else needs; what holds anything is not ours and stays."""
        for key in held:
            standing = self._standing[key]
            standing.users -= 1
            if standing.users:
                continue
            del self._standing[key]
            place, name = key
            folder = self._folders[place]
            self._take(folder.fd, name, standing.mark)
            folder.names -= 1
            if not folder.names:
                os.close(self._folders.pop(place).fd)
        held.clear()

    def close(self) -> None:
        if self._store_fd is not None:
            os.close(self._store_fd)
            self._store_fd = None

    def _folder(self, place: _Place, fd: int) -> _Folder:
        if place not in self._folders:
            self._folders[place] = _Folder(os.dup(fd))
        return self._folders[place]

    def _put(self, folder_fd: int, name: str, *, is_file: bool) -> _Mark | None:
        try:
            spare, mark = self._spare(is_file)
        except OSError:
            return _make(folder_fd, name, is_file)
        try:
            self._move_in(spare, folder_fd, name, is_file)
        except OSError as error:
            self._free[is_file].append((spare, mark))
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                # Something appeared there meanwhile, or was left by a killed service; it can be mounted over.
                return _NOT_OURS
            return _make(folder_fd, name, is_file)
        return mark

    def _move_in(self, spare: str, folder_fd: int, name: str, is_file: bool) -> None:
        if not is_file:
            os.rename(spare, name, src_dir_fd=self._store_fd, dst_dir_fd=folder_fd)
            return
        # A file would take the place of one that appeared meanwhile; a link does not.
        os.link(spare, name, src_dir_fd=self._store_fd, dst_dir_fd=folder_fd, follow_symlinks=False)
        os.unlink(spare, dir_fd=self._store_fd)

    def _take(self, folder_fd: int, name: str, mark: _Mark) -> None:
        with contextlib.suppress(OSError):
            found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
            if _mark_of(found) != mark and not (is_like_ours(found) and _is_empty(found, folder_fd, name)):
                return
            is_file = not stat.S_ISDIR(found.st_mode)
            if not self._move_back(folder_fd, name, _mark_of(found), is_file):
                (os.unlink if is_file else os.rmdir)(name, dir_fd=folder_fd)

    def _move_back(self, folder_fd: int, name: str, mark: _Mark, is_file: bool) -> bool:
        if self._store_fd is None:
            return False
        spare = self._new_name()
        try:
            os.rename(name, spare, src_dir_fd=folder_fd, dst_dir_fd=self._store_fd)
        except OSError:
            return False
        self._free[is_file].append((spare, mark))
        return True

    def _spare(self, is_file: bool) -> tuple[str, _Mark]:
        store_fd = self._open_store()
        if self._free[is_file]:
            return self._free[is_file].pop()
        name = self._new_name()
        mark = _make(store_fd, name, is_file)
        if mark is None:
            raise OSError(errno.EACCES, "the store cannot be written")
        return name, mark

    def _new_name(self) -> str:
        self._made += 1
        return f"{os.getpid()}-{self._made}"

    def _open_store(self) -> int:
        if self._store_fd is None:
            self._store.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = self._store_fd = os.open(self._store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            for name in os.listdir(fd):  # noqa: PTH208  # by descriptor
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if name != _EMPTY and is_like_ours(found):
                    self._free[stat.S_ISREG(found.st_mode)].append((name, _mark_of(found)))
            _make(fd, _EMPTY, is_file=True)
        return self._store_fd


def is_like_ours(found: os.stat_result) -> bool:
    """True for what looks like a placeholder: held for another command now, or left by a service that was killed."""
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISREG(found.st_mode):
        return mode == _FILE_MODE and found.st_size == 0 and found.st_mtime_ns == 0
    return stat.S_ISDIR(found.st_mode) and mode == _FOLDER_MODE and found.st_nlink == 2


def _is_empty(found: os.stat_result, folder_fd: int, name: str) -> bool:
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size == 0
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
    try:
        return not os.listdir(fd)  # noqa: PTH208  # by descriptor
    finally:
        os.close(fd)


def _make(folder_fd: int, name: str, is_file: bool) -> _Mark | None:
    try:
        if is_file:
            return _make_file(folder_fd, name)
        os.mkdir(name, _FOLDER_MODE, dir_fd=folder_fd)
        return _mark_of(os.stat(name, dir_fd=folder_fd, follow_symlinks=False))
    except FileExistsError:
        return _NOT_OURS
    except OSError:
        return None


def _make_file(folder_fd: int, name: str) -> _Mark:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE, dir_fd=folder_fd)
    try:
        os.fchmod(fd, _FILE_MODE)
        os.utime(fd, ns=_FILE_TIME)
        return _mark_of(os.fstat(fd))
    finally:
        os.close(fd)


def _mark_of(found: os.stat_result) -> _Mark:
    return found.st_ino, found.st_mtime_ns
