"""inotify watches that report which folders of a root changed, so that a scan need not stat them all."""

import ctypes
import select
import struct
import threading
from functools import lru_cache
from pathlib import Path

from computer_linker.system import os

_CHANGES = 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x0100_0000
"""Moved from, moved to, created, deleted, itself deleted; folders only."""
_CONTENTS = 0x2 | 0x4 | 0x8
"""A file in it was written, its attributes changed, or it was closed after writing."""
_OVERFLOW, _UNMOUNTED, _IGNORED = 0x4000, 0x2000, 0x8000
_EVENT = struct.Struct("iIII")
_READ = 65_536
_MOST_READS = 32
"""Reads of events per scan; beyond that, checking every folder is faster."""
_LOCAL_DISKS = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x2FC12FC1, 0xF2F52010, 0xCA451A4E, 0x858458F6})
"""ext, xfs, btrfs, tmpfs, zfs, f2fs, bcachefs, ramfs: every change to them causes an event. Others may change without one."""
_SHARE = 4
"""At most a quarter of the user's watches: editors need the rest."""


_taken = 0
_counting = threading.Lock()


class Watches:
    """One inotify descriptor, and one on the mount table: mounting over a folder causes no inotify event."""

    def __init__(self, fd: int, mounts: int, mask: int = _CHANGES) -> None:
        self._fd = fd
        self._mask = mask
        self._mounts = mounts
        self._held: set[int] = set()
        self._local: dict[int, bool] = {}
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._poll.register(mounts, select.POLLPRI)
        self._remounted = False

    @classmethod
    def open(cls, *, contents: bool = False) -> "Watches | None":
        """Watches for one root, of names or also of what its files contain; None where the system has none left."""
        if not hasattr(os, "O_PATH") or _most() == 0:
            return None
        fd = _libc().inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if fd < 0:
            return None
        try:
            mounts = os.open("/proc/self/mounts", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            os.close(fd)
            return None
        found = cls(fd, mounts, _CHANGES | _CONTENTS if contents else _CHANGES)
        # The first poll reports everything from before it was opened.
        found._poll.poll(0)
        return found

    def add(self, folder_fd: int, device: int) -> int | None:
        """Watch an open folder; None when there are no more watches, or its file system may change without an event."""
        if device not in self._local:
            self._local[device] = _is_local(folder_fd)
        if not self._local[device] or _taken >= _most():
            return None
        watch: int = _libc().inotify_add_watch(self._fd, b"/proc/self/fd/%d" % folder_fd, self._mask)
        if watch < 0:
            return None
        if watch not in self._held:
            self._held.add(watch)
            _count(1)
        return watch

    def forget(self, watch: int) -> None:
        _libc().inotify_rm_watch(self._fd, watch)
        self._lost(watch)

    def is_quiet(self) -> bool:
        """True when nothing was reported since the last call of `changed`. Takes microseconds."""
        ready = dict(self._poll.poll(0))
        # Polling it once makes it quiet again.
        self._remounted = self._remounted or self._mounts in ready
        return not ready and not self._remounted

    def changed(self) -> tuple[set[int], set[int]] | None:
        """The watches whose folders changed, and those that ended; None when every folder has to be checked."""
        found: set[int] = set()
        gone: set[int] = set()
        is_quiet = self.is_quiet()
        is_lost, self._remounted = self._remounted, False
        for _ in range(0 if is_quiet else _MOST_READS):
            try:
                data = os.read(self._fd, _READ)
            except BlockingIOError:
                return None if is_lost else (found, gone)
            at = 0
            while at < len(data):
                watch, mask, _, size = _EVENT.unpack_from(data, at)
                at += _EVENT.size + size
                is_lost = is_lost or bool(mask & _OVERFLOW)
                if mask & (_IGNORED | _UNMOUNTED):
                    gone.add(watch)
                    self._lost(watch)
                else:
                    found.add(watch)
        return (found, gone) if is_quiet else None

    def close(self) -> None:
        _count(-len(self._held))
        os.close(self._fd)
        os.close(self._mounts)

    def _lost(self, watch: int) -> None:
        if watch in self._held:
            self._held.discard(watch)
            _count(-1)


def _count(more: int) -> None:
    global _taken  # the limit of watches is per user, so all roots share it
    with _counting:
        _taken += more


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@lru_cache(maxsize=1)
def _most() -> int:
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_watches").read_text(encoding="ascii")) // _SHARE
    except (OSError, ValueError):
        return 0


def _is_local(fd: int) -> bool:
    found = ctypes.create_string_buffer(256)
    if _libc().fstatfs(fd, found) != 0:
        return False
    return (ctypes.c_long.from_buffer(found).value & 0xFFFFFFFF) in _LOCAL_DISKS
