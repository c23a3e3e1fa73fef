"""Empty folders that stand where a protected name is missing, so that a mount can close the name."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PLACEHOLDER_MODE = 0o555
_Place = tuple[int, int]
Held = tuple[_Place, str]
"""Which folder (device and number) and which name in it."""
_Mark = tuple[int, int]
"""A folder's number, and when an entry of it was last made or removed: as long as both are the same it is ours, and empty."""
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

    They are moved in from a store and back: making and removing folders on a disk takes ten to a hundred times as long.
    Where the store lies on another disk they are made and removed all the same.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._store_fd: int | None = None
        self._free: list[tuple[str, _Mark]] = []
        self._made = 0
        self._standing: dict[Held, _Standing] = {}
        self._folders: dict[_Place, _Folder] = {}

    def hold(self, folder_fd: int, names: Iterable[str]) -> list[Held]:
        """Put empty folders at missing names, and tell which stand: in a place that cannot be written none can."""
        found = os.fstat(folder_fd)
        place = (found.st_dev, found.st_ino)
        held: list[Held] = []
        for name in names:
            key = (place, name)
            standing = self._standing.get(key)
            if standing is None:
                mark = self._put(folder_fd, name)
                if mark is None:
                    continue
                standing = self._standing[key] = _Standing(mark)
                self._folder(place, folder_fd).names += 1
            standing.users += 1
            held.append(key)
        return held

    def let_go(self, held: list[Held]) -> None:
        """Take away the folders that nobody else needs; one that holds anything is not ours and stays."""
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

    def _put(self, folder_fd: int, name: str) -> _Mark | None:
        try:
            spare, mark = self._spare()
        except OSError:
            return self._make(folder_fd, name)
        try:
            os.rename(spare, name, src_dir_fd=self._store_fd, dst_dir_fd=folder_fd)
        except OSError as error:
            self._free.append((spare, mark))
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                # Something appeared there meanwhile, or was left by a killed service; it can be mounted over.
                return _NOT_OURS
            return self._make(folder_fd, name)
        return mark

    @staticmethod
    def _make(folder_fd: int, name: str) -> _Mark | None:
        try:
            os.mkdir(name, PLACEHOLDER_MODE, dir_fd=folder_fd)
        except FileExistsError:
            return _NOT_OURS
        except OSError:
            return None
        return _mark_of(folder_fd, name)

    def _take(self, folder_fd: int, name: str, mark: _Mark) -> None:
        with contextlib.suppress(OSError):
            if _mark_of(folder_fd, name) != mark:
                if not _is_left_over(folder_fd, name):
                    return
                mark = _mark_of(folder_fd, name)
            if not self._move_back(folder_fd, name, mark):
                os.rmdir(name, dir_fd=folder_fd)

    def _move_back(self, folder_fd: int, name: str, mark: _Mark) -> bool:
        if self._store_fd is None:
            return False
        self._made += 1
        spare = f"{os.getpid()}-{self._made}"
        try:
            os.rename(name, spare, src_dir_fd=folder_fd, dst_dir_fd=self._store_fd)
        except OSError:
            return False
        self._free.append((spare, mark))
        return True

    def _spare(self) -> tuple[str, _Mark]:
        if self._store_fd is None:
            self._store.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._store_fd = os.open(self._store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._free = [(path.name, _mark_of(self._store_fd, path.name)) for path in self._store.iterdir()]
        if self._free:
            return self._free.pop()
        self._made += 1
        name = f"{os.getpid()}-{self._made}"
        os.mkdir(name, PLACEHOLDER_MODE, dir_fd=self._store_fd)
        return name, _mark_of(self._store_fd, name)


def _mark_of(folder_fd: int, name: str) -> _Mark:
    found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    return found.st_ino, found.st_mtime_ns


def _is_left_over(folder_fd: int, name: str) -> bool:
    """True for an empty folder with our mode: left by a service that was killed."""
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
    try:
        return stat.S_IMODE(os.fstat(fd).st_mode) == PLACEHOLDER_MODE and not os.listdir(fd)  # noqa: PTH208
    finally:
        os.close(fd)
