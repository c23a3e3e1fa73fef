"""Opens folders below a root component by component without following links."""

import contextlib
import ctypes
import errno
import stat
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from computer_linker.providers.sandbox.judge import Parts
from computer_linker.system import os

_PASSABLE = 0o500
_CLOCK_REALTIME_COARSE = 5
_AT_SYMLINK_NOFOLLOW, _STATX_BTIME = 0x100, 0x800
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Steps:
    """Opens folders below a root. The last parent stays open, because its other children usually follow."""

    def __init__(self, root_fd: int) -> None:
        self.root = root_fd
        self._above: Parts | None = None
        self._fd = -1

    def open(self, parts: Parts) -> int:
        """Open one for reading. Raises OSError when it is missing or no folder."""
        if not parts:
            return os.open(".", _FOLDER, dir_fd=self.root)
        if self._above != parts[:-1]:
            self.close()
            self._fd = open_below(self.root, parts[:-1])
            self._above = parts[:-1]
        return os.open(parts[-1], _FOLDER, dir_fd=self._fd)

    def close(self) -> None:
        if self._above is not None:
            self._above = None
            os.close(self._fd)


def open_below(root_fd: int, parts: Parts) -> int:
    """Open a folder below the root for reading, component by component without following links."""
    # Not by openat2: our binding holds the interpreter lock, and a slow disk would stall every other thread.
    fd = os.open(".", _FOLDER, dir_fd=root_fd)
    for name in parts:
        above = fd
        try:
            fd = os.open(name, _FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return fd


def stat_below(root_fd: int, parts: Parts) -> os.stat_result | None:
    """What is at a path below the root, a link as itself; None when nothing is."""
    try:
        fd = open_below(root_fd, parts[:-1])
    except OSError:
        return None
    try:
        return os.stat(parts[-1], dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
    finally:
        os.close(fd)


@contextlib.contextmanager
def reached(root_fd: int, parts: Parts) -> Iterator[int]:
    """An open folder below the root, also one whose mode denies its owner access."""
    try:
        fd = open_below(root_fd, parts)
    except OSError as error:
        if not is_shut(error):
            raise
        with opened_up(root_fd, parts) as fd:
            yield fd
        return
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def opened_up(root_fd: int, parts: Parts) -> Iterator[int]:
    """Open a folder whose mode, or that of a parent, denies its owner access; the modes are restored afterwards.

    A command has the owner's rights, so it may shut a folder and what it planted there. Raises OSError for another's folder.
    """
    shut: list[tuple[int, int]] = []
    held = os.dup(root_fd)
    try:
        for name in (*parts, None):
            mode = stat.S_IMODE(os.fstat(held).st_mode)
            if mode & _PASSABLE != _PASSABLE:
                _set_mode(held, mode | _PASSABLE)
                shut.append((os.dup(held), mode))
            above = held
            flags = _FOLDER if name is None else _FOLDER & ~os.O_ACCMODE | getattr(os, "O_PATH", 0)
            held = os.open("." if name is None else name, flags, dir_fd=above)
            os.close(above)
        yield held
    finally:
        os.close(held)
        for fd, mode in reversed(shut):
            with contextlib.suppress(OSError):
                # Unless it was changed again meanwhile.
                if stat.S_IMODE(os.fstat(fd).st_mode) == mode | _PASSABLE:
                    _set_mode(fd, mode)
            os.close(fd)


def is_shut(error: OSError) -> bool:
    return error.errno in (errno.EACCES, errno.EPERM)


def _set_mode(fd: int, mode: int) -> None:
    os.chmod(f"/proc/self/fd/{fd}", mode)  # fchmod takes no descriptor by O_PATH


def birth_clock_ns() -> int:
    """The present time by the clock from which Linux takes birth times."""
    return time.time_ns() if _statx() is None else time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)


def made_at(root_fd: int, parts: Parts) -> int | None:
    """The birth time of a path in nanoseconds; None where the file system has none. No program can set this time."""
    statx = _statx()
    if statx is None:
        return None
    try:
        above = open_below(root_fd, parts[:-1])
    except OSError:
        return None
    found = ctypes.create_string_buffer(256)
    try:
        failed = statx(above, os.fsencode(parts[-1]) if parts else b".", _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, found)
    finally:
        os.close(above)
    if failed or not int.from_bytes(found.raw[:4], sys.byteorder) & _STATX_BTIME:
        return None
    seconds, rest = (int.from_bytes(found.raw[at : at + size], sys.byteorder) for at, size in ((80, 8), (88, 4)))
    return seconds * 1_000_000_000 + rest


@lru_cache(maxsize=1)
def _statx() -> Any:
    # Linux 4.11 with glibc 2.28 has it; Python has no name for it.
    return getattr(ctypes.CDLL(None), "statx", None)
