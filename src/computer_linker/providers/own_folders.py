"""Measures and removes folders of the service in which a program wrote: however deep, and whatever rights it took away."""

import asyncio
import contextlib
import errno
import itertools
import logging
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from computer_linker.system import os

log = logging.getLogger(__name__)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HOLD = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def disk_use(place: Path) -> int:
    """The bytes on disk of everything in a folder. One descriptor is open at a time, and no path gets too long."""
    walk = _Walk(os.open(place, _FOLDER))
    try:
        return walk.run()
    finally:
        os.close(walk.here)


class _Walk:
    """Walks a folder by descriptors. A program may still run in it: a folder it closes meanwhile is left out."""

    def __init__(self, here: int) -> None:
        self.here = here
        self.total = 0
        self._above: list[tuple[os.stat_result, list[str], int | None]] = []
        """Each folder down to this one, with those in it that are still to be entered, and the mode to give back to it."""

    def run(self) -> int:
        self._above.append((os.fstat(self.here), self._look(), None))
        while self._above:
            _, names, mode = self._above[-1]
            if names:
                self._enter(names.pop())
                continue
            self._above.pop()
            if self._above and not self._leave(mode):
                break
        return self.total

    def _look(self) -> list[str]:
        names: list[str] = []
        with contextlib.suppress(OSError), os.scandir(self.here) as found:
            for entry in found:
                with contextlib.suppress(OSError):
                    self.total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        names.append(entry.name)
        return names

    def _enter(self, name: str) -> None:
        try:
            held = os.open(name, _HOLD, dir_fd=self.here)
        except OSError:
            return
        mode = None
        try:
            inner, mode = _opened(held)
        except OSError:
            return
        finally:
            os.close(held)
        os.close(self.here)
        self.here = inner
        self._above.append((os.fstat(inner), self._look(), mode))

    def _leave(self, mode: int | None) -> bool:
        """Go to the folder above; False where a program moved this one meanwhile, and another is above it."""
        try:
            above = os.open("..", _FOLDER, dir_fd=self.here)
        except OSError:
            return False
        finally:
            if mode is not None:
                os.fchmod(self.here, mode)
        os.close(self.here)
        self.here = above
        return os.path.samestat(os.fstat(above), self._above[-1][0])


def _opened(held: int) -> tuple[int, int | None]:
    """A held folder open for reading, and the mode to give back to it where that had to be changed."""
    mode = stat.S_IMODE(os.fstat(held).st_mode)
    if mode & stat.S_IRWXU == stat.S_IRWXU or os.geteuid() == 0:
        return os.open(".", _FOLDER, dir_fd=held), None
    # By the descriptor: the name may be a link by now.
    own = f"/proc/self/fd/{held}"
    os.chmod(own, mode | stat.S_IRWXU)
    try:
        return os.open(".", _FOLDER, dir_fd=held), mode
    except OSError:
        os.chmod(own, mode)
        raise


def remove_folder(place: Path) -> None:
    """Remove a folder in which a program wrote. One may still run there: everything is done by descriptors, so that no link
    that it puts in a folder's place is followed.

    Each folder in it is moved to the top before it is emptied, so no path gets too long.
    """
    _make_usable(place)
    top = os.open(place, _FOLDER)
    try:
        # A name that the program could not have taken before, nor an earlier attempt that a crash ended.
        names = map(f".{secrets.token_hex(8)}-{{}}".format, itertools.count())
        todo = _emptied(top, top, names)
        while todo:
            todo += _removed(todo.pop(), top, names)
    finally:
        os.close(top)
    place.rmdir()


def _removed(name: str, top: int, names: Iterator[str]) -> list[str]:
    """Remove one folder of the top; returns the names of those that were in it, which are at the top now."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=top)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        # A file or a link was put there since.
        os.unlink(name, dir_fd=top)
        return []
    try:
        found = _emptied(folder, top, names)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
    return found


def _emptied(folder: int, top: int, names: Iterator[str]) -> list[str]:
    """Remove the files of a folder and move its folders to the top; returns their names there."""
    moved: list[str] = []
    with os.scandir(folder) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_folder in entries:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
            continue
        _make_usable(name, folder)
        moved.append(next(names))
        os.rename(name, moved[-1], src_dir_fd=folder, dst_dir_fd=top)
    return moved


def _make_usable(name: "str | Path", folder: int | None = None) -> None:
    """Give the owner all rights to a folder, whose name may have become a link."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, 0o700, dir_fd=folder, follow_symlinks=False)
        return
    held = os.open(name, _HOLD, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{held}", 0o700)  # Linux has no call that does not follow a link
    finally:
        os.close(held)


def remove_later(place: Path) -> None:
    """Remove such a folder in a thread: it may hold a million files."""
    asyncio.get_running_loop().run_in_executor(None, _try_to_remove, place)


def _try_to_remove(place: Path) -> None:
    try:
        remove_folder(place)
    except OSError as error:
        log.warning("a folder in which a program wrote could not be removed: %s", error)
