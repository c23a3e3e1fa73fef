"""Empty folders that stand where a protected name is missing, so that a mount can close the name."""

import contextlib
import errno
import os
import stat
from collections import Counter
from pathlib import Path

PLACEHOLDER_MODE = 0o555
Held = tuple[int, int, str]
"""Which folder (device and number) and which name in it."""


class Placeholders:
    """Counted by folder and name, since several commands may run in one root; the last one takes it away again.

    They are moved in from a store and back: making and removing folders on a disk takes ten to a hundred times as long.
    Where the store lies on another disk they are made and removed all the same.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._store_fd: int | None = None
        self._free: list[str] = []
        self._made = 0
        self._held: Counter[Held] = Counter()
        self._folders: dict[tuple[int, int], int] = {}

    def hold(self, folder_fd: int, name: str) -> Held | None:
        """Put an empty folder at a missing name. None when the place cannot be written at all."""
        found = os.fstat(folder_fd)
        place = (found.st_dev, found.st_ino)
        key = (*place, name)
        if key not in self._held and not self._put(folder_fd, name):
            return None
        self._held[key] += 1
        if place not in self._folders:
            self._folders[place] = os.dup(folder_fd)
        return key

    def let_go(self, held: list[Held]) -> None:
        """Take away the folders that nobody else needs; one that holds anything is not ours and stays."""
        for key in held:
            self._held[key] -= 1
            if self._held[key] <= 0:
                del self._held[key]
                self._take(self._folders[key[:2]], key[2])
        for place in {key[:2] for key in held}:
            if not any(key[:2] == place for key in self._held):
                os.close(self._folders.pop(place))

    def close(self) -> None:
        if self._store_fd is not None:
            os.close(self._store_fd)
            self._store_fd = None

    def _put(self, folder_fd: int, name: str) -> bool:
        try:
            spare = self._spare()
        except OSError:
            return self._make(folder_fd, name)
        try:
            os.rename(spare, name, src_dir_fd=self._store_fd, dst_dir_fd=folder_fd)
            return True
        except OSError as error:
            self._free.append(spare)
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                # Something appeared there meanwhile, or was left by a killed service; it can be mounted over.
                return True
            return self._make(folder_fd, name)

    @staticmethod
    def _make(folder_fd: int, name: str) -> bool:
        try:
            os.mkdir(name, PLACEHOLDER_MODE, dir_fd=folder_fd)
        except FileExistsError:
            return True
        except OSError:
            return False
        return True

    def _take(self, folder_fd: int, name: str) -> None:
        with contextlib.suppress(OSError):
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder_fd)
            try:
                is_ours = stat.S_IMODE(os.fstat(fd).st_mode) == PLACEHOLDER_MODE and not os.listdir(fd)  # noqa: PTH208
            finally:
                os.close(fd)
            if is_ours and not self._move_back(folder_fd, name):
                os.rmdir(name, dir_fd=folder_fd)

    def _move_back(self, folder_fd: int, name: str) -> bool:
        if self._store_fd is None:
            return False
        self._made += 1
        spare = f"{os.getpid()}-{self._made}"
        try:
            os.rename(name, spare, src_dir_fd=folder_fd, dst_dir_fd=self._store_fd)
        except OSError:
            return False
        self._free.append(spare)
        return True

    def _spare(self) -> str:
        if self._store_fd is None:
            self._store.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._store_fd = os.open(self._store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._free = [path.name for path in self._store.iterdir()]
        if self._free:
            return self._free.pop()
        self._made += 1
        name = f"{os.getpid()}-{self._made}"
        os.mkdir(name, PLACEHOLDER_MODE, dir_fd=self._store_fd)
        return name
