"""Stores planted names after their removal from the owner's folder. Nothing is deleted at once."""

import contextlib
import errno
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from computer_linker.computer.local.portable.openat2 import RENAME_NOREPLACE, rename
from computer_linker.providers.sandbox.judge import Parts
from computer_linker.system import os

_KEPT_S = 30 * 86_400
_MAX_KEPT = 200
_MAX_BYTES = 1 << 30
_MAX_COPIED_BYTES = 64 << 20
_MAX_COPIED = 10_000
_MAX_DEPTH = 64
"""Each level takes two descriptors while it is copied."""
_BLOCK = 512
_SHARE = 4
_SAME_NAME = 1_000
_MAX_NAMES = 100_000


class Refused:
    """One folder per command below the service's state, and in it one for each name.

    Stored for 30 days, and up to 200 commands or 1 GiB. One command gets a quarter of that, so that it cannot evict all
    others; anything larger stays in its folder under another name.
    """

    def __init__(self, place: Path, max_bytes: int = _MAX_BYTES) -> None:
        self._place = place
        self._max_bytes = max_bytes
        self._bytes: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._tidying = threading.Lock()

    def take(self, parent_fd: int, parts: Parts, command: str) -> str:
        """Remove an entry of an open folder. Returns where it is stored; raises OSError when it cannot be removed.

        A link is stored as a link. Nothing existing is replaced. No folder is ever moved into the state: a process whose
        working folder it is would be moved along, and could reach the folders around it by `..`.
        """
        with _movable(parent_fd, parts[-1]):
            return self._store(parent_fd, parts, command)

    def _store(self, parent_fd: int, parts: Parts, command: str) -> str:
        try:
            folder = self._new_folder(command) / "/".join(parts[:-1])
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return _aside(parent_fd, parts, command)
        left = self._max_bytes // _SHARE - (self._bytes.get(command) or self._measured(self._place / command))
        room = _Room(left)
        try:
            return _copied(parent_fd, parts, command, folder, fd, room)
        finally:
            os.close(fd)
            self._bytes[command] += left - room.disk

    def tidy(self, newest: str) -> None:
        """Delete what exceeds the limits of age and size, the oldest first; never the newest.

        Before these goes what has grown past its share: a program may still have had a file open that was taken from it.
        """
        # Scans of different roots call this from several threads.
        with self._tidying:
            kept = _by_age(self._place)
            sizes = [self._bytes.get(each.name) or self._measured(each) for _, each in kept]
            total, left, oldest = sum(sizes), len(kept), time.time() - _KEPT_S
            share = self._max_bytes // _SHARE
            for (changed, each), size in sorted(zip(kept, sizes, strict=True), key=lambda one: one[1] <= share):
                if each.name == newest or not (changed < oldest or left > _MAX_KEPT or total > self._max_bytes):
                    continue
                total, left = total - size, left - 1
                self._bytes.pop(each.name, None)
                self._next.pop(each.name, None)
                shutil.rmtree(each, ignore_errors=True)

    def _measured(self, place: Path) -> int:
        size = self._bytes[place.name] = _size_of(place)
        return size

    def _new_folder(self, command: str) -> Path:
        """Create a folder for one name. Earlier entries may hold links to anywhere, so nothing is put beside them."""
        for place in (self._place, self._place / command):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(self._next.get(command, 0) + 1, _MAX_NAMES):
            with contextlib.suppress(FileExistsError):
                place = self._place / command / str(number)
                place.mkdir(mode=0o700)
                self._next[command] = number
                return place
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), command)


class _TooMuchError(Exception):
    """More than is stored."""


@dataclass(slots=True)
class _Room:
    """The remaining budget for one name."""

    disk: int
    """Bytes on disk."""
    copied: int = _MAX_COPIED_BYTES
    entries: int = _MAX_COPIED

    def take(self, *, disk: int = 0, copied: int = 0, entries: int = 0) -> None:
        self.disk, self.copied, self.entries = self.disk - disk, self.copied - copied, self.entries - entries
        if min(self.disk, self.copied, self.entries) < 0:
            raise _TooMuchError


def _copied(parent_fd: int, parts: Parts, command: str, folder: Path, fd: int, room: _Room) -> str:
    """Rename it first, then copy and remove it if it fits the limits."""
    aside = _moved(parent_fd, parts[-1], _aside_name(parts[-1], command))
    try:
        name = _copy(parent_fd, aside, fd, parts[-1], room)
    except (OSError, _TooMuchError):
        return "/".join((*parts[:-1], aside))
    _remove(parent_fd, aside)
    return str(folder / name)


def put_link(parent_fd: int, name: str, target: str) -> None:
    """Put a link back where one was replaced."""
    with contextlib.suppress(OSError):
        os.symlink(target, name, dir_fd=parent_fd)


def _moved(fd: int, source: str, name: str) -> str:
    """Rename an entry to an unused name."""
    for number in range(1, _SAME_NAME):
        wanted = name if number == 1 else f"{name}.{number}"
        try:
            _rename(fd, source, wanted)
        except FileExistsError:
            continue
        return wanted
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)


def _rename(fd: int, source: str, name: str) -> None:
    try:
        rename(fd, source, fd, name, flags=RENAME_NOREPLACE)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL):
            raise
        if _lexists(fd, name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from error
        os.rename(source, name, src_dir_fd=fd, dst_dir_fd=fd)


def _aside(parent_fd: int, parts: Parts, command: str) -> str:
    return "/".join((*parts[:-1], _moved(parent_fd, parts[-1], _aside_name(parts[-1], command))))


def _aside_name(name: str, command: str) -> str:
    # Without its dot, so that it is visible, and no protected name itself.
    return f"{name.lstrip('.')[:100]}.refused-{command}"


@contextlib.contextmanager
def _movable(parent_fd: int, name: str) -> Iterator[None]:
    """Make an entry movable: a command may have removed the permission, which the owner may restore."""
    mode = stat.S_IMODE(os.fstat(parent_fd).st_mode)
    is_shut = mode & 0o300 != 0o300
    if is_shut:
        with contextlib.suppress(OSError):
            os.fchmod(parent_fd, mode | 0o300)
    _make_movable(parent_fd, name)
    try:
        yield
    finally:
        if is_shut:
            with contextlib.suppress(OSError):
                os.fchmod(parent_fd, mode)


def _make_movable(parent_fd: int, name: str) -> None:
    with contextlib.suppress(OSError):
        about = os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
        if stat.S_ISDIR(about.st_mode) and about.st_mode & 0o700 != 0o700:
            fd = os.open(name, getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent_fd)
            try:
                os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(about.st_mode) | 0o700)  # no fchmod by O_PATH
            finally:
                os.close(fd)


def _copy(source_fd: int, source: str, fd: int, name: str, room: _Room) -> str:
    """Recreate folders, and hard-link everything else there, or copy it across file systems."""
    before = room.disk
    while _lexists(fd, name):
        name += ".2"
    try:
        _copy_entry(source_fd, source, fd, name, room, 0)
    except BaseException:
        _remove(fd, name)
        room.disk = before
        raise
    return name


def _copy_entry(source_fd: int, source: str, fd: int, name: str, room: _Room, depth: int) -> None:
    about = os.stat(source, dir_fd=source_fd, follow_symlinks=False)
    room.take(disk=about.st_blocks * _BLOCK, entries=1)
    if depth > _MAX_DEPTH:
        raise _TooMuchError
    if not stat.S_ISDIR(about.st_mode) and _linked(source_fd, source, fd, name):
        return
    if stat.S_ISLNK(about.st_mode):
        os.symlink(os.readlink(source, dir_fd=source_fd), name, dir_fd=fd)
    elif stat.S_ISREG(about.st_mode):
        _copy_file(source_fd, source, fd, name, room)
    elif stat.S_ISDIR(about.st_mode):
        os.mkdir(name, 0o700, dir_fd=fd)
        inner_source = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=source_fd)
        try:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            try:
                for entry in os.listdir(inner_source):  # by descriptor
                    _copy_entry(inner_source, entry, inner, entry, room, depth + 1)
            finally:
                os.close(inner)
        finally:
            os.close(inner_source)


def _linked(source_fd: int, source: str, fd: int, name: str) -> bool:
    """Hard-link an entry; the kernel refuses folders, so a swapped entry cannot be followed."""
    try:
        os.link(source, name, src_dir_fd=source_fd, dst_dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def _copy_file(source_fd: int, source: str, fd: int, name: str, room: _Room) -> None:
    # O_NONBLOCK: the open of a pipe put there meanwhile would wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(os.open(source, flags, dir_fd=source_fd), "rb") as data:
        made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=fd)
        with open(made, "wb") as copy:
            while piece := data.read(1 << 20):
                room.take(copied=len(piece))
                copy.write(piece)


def _remove(fd: int, name: str) -> None:
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            shutil.rmtree(name, ignore_errors=True, dir_fd=fd)
        else:
            os.unlink(name, dir_fd=fd)


def _lexists(fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _by_age(place: Path) -> list[tuple[float, Path]]:
    """The entries of a folder with their change times, the oldest first; none when there is no such folder."""
    found: list[tuple[float, Path]] = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for each in place.iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.append((each.stat(follow_symlinks=False).st_mtime, each))
    return sorted(found)


def _size_of(place: Path) -> int:
    total = 0
    for count, (_, _, files, fd) in enumerate(os.fwalk(place, follow_symlinks=False)):
        if count > _MAX_COPIED:
            break
        for name in files:
            with contextlib.suppress(OSError):
                # Blocks in use: a sparse file may claim any size.
                total += os.stat(name, dir_fd=fd, follow_symlinks=False).st_blocks * _BLOCK
    return total
