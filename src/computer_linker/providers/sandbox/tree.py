"""A tree: what lies in the folders below a root, kept up to date at little cost.

Every folder is looked into. Where the kernel reports changes (see watches.py), a further look costs only what changed.
Elsewhere each known folder is asked for its change time, which only the kernel can set: one that stands still holds the
same names.

A tree is used by one thread at a time, which holds its lock.
"""

import errno
import os
import time
from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import anyio

from computer_linker.policy.names import is_protected
from computer_linker.providers.sandbox.boundary import Folder
from computer_linker.providers.sandbox.judge import Entry, Judge, Parts
from computer_linker.providers.sandbox.pace import Pace
from computer_linker.providers.sandbox.steps import Steps
from computer_linker.providers.sandbox.watches import Watches

MAX_FOLDERS = 60_000
MAX_ENTRIES = 1_000_000
_MAX_DEPTH = 64
_MAX_WAITING = 200_000
_TICK_NS = 50_000_000
"""The kernel's clock for files is coarse: what changed so lately may change again and show the same time."""
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_NONE: dict[str, int] = {}


@dataclass(slots=True)
class Seen:
    """What one folder held that matters, and its identity and change time when it was looked into."""

    device: int
    inode: int
    changed_ns: int
    is_settled: bool
    found: tuple[Entry, ...]
    below: dict[str, int]
    """Folders in it, with their numbers."""
    files: "array[int]"
    """The numbers of its files: a secret may have a second name."""
    size: int
    watch: int | None = None
    is_readable: bool = True
    is_cut_short: bool = False
    """More entries, or folders deeper, than are looked at."""
    is_inside: bool = False
    """It is protected, or lies in a folder that is."""


class Tree:
    """One root under one set of rules: its folders, and when each folder and protected name was first seen."""

    def __init__(self, folder: Folder, max_folders: int = MAX_FOLDERS) -> None:
        self._max_folders = max_folders
        self._rules = folder.rules
        self._above = folder.above
        self._watches = Watches.open()
        self._waiting: deque[Parts] = deque([()])
        """Folders that exist and were not looked into yet."""
        self._entries = 0
        self._again: set[Parts] = set()
        """Folders to be asked every time: the kernel does not report what would change the answer."""
        self._gone: dict[Parts, int] = {}
        """What is gone, and by which look that was found."""
        self._by_watch: dict[int, Parts] = {}
        self._lost_links: dict[Parts, Entry] = {}
        self.folders: dict[Parts, Seen] = {}
        self.noted: set[Parts] = set()
        """Folders with something in them that matters."""
        self.first_seen: dict[Parts, int] = {}
        """By which look a folder or a protected name was first seen; also of what is gone, where a running command saw it."""
        self.absent: dict[Parts, tuple[int, int]] = {}
        """Protected names that are back: the look that found them gone, and the one that found them again."""
        self.fresh: list[tuple[Parts, Entry | None]] = []
        """Protected names that appeared while commands run, with the link that was there before."""
        self.number = 0
        """How many looks there were."""
        self.version = 0
        """Changes when something was found to have changed."""
        self.running: dict[object, int] = {}
        """Commands that run here, and the look each was started with."""
        self.kept: dict[object, tuple[int, Any]] = {}
        """What was worked out from which version."""
        self.took_s = 0.0
        self.lock = anyio.Lock()
        """One look at a time."""

    @property
    def is_watched(self) -> bool:
        return self._watches is not None

    def place(self, parts: Parts) -> Parts:
        """The path from the scope's root."""
        return (*self._above, *parts)

    def is_quiet(self) -> bool:
        """True when a look would find what it found before; False where a look is needed to find out."""
        return self._watches is not None and not self._again and not self._waiting and self._watches.is_quiet()

    def not_looked_into(self) -> list[Parts]:
        """Folders that hold something that was not looked at."""
        return [*self._waiting, *(parts for parts in self._again if self.folders[parts].is_cut_short)]

    def unreadable(self) -> list[Parts]:
        """Folders that cannot be read now. A command could change that: it has the same rights."""
        return [parts for parts in self._again if not self.folders[parts].is_readable]

    def look(self, root_fd: int) -> None:
        """Find out what lies in the root now."""
        started = time.monotonic()
        steps, pace = Steps(root_fd), Pace()
        self.number += 1
        self._forget_gone(max(self.running.values(), default=0))
        # Shallow first: what lies in a folder that is gone need not be asked.
        for parts in sorted(self._dirty(root_fd), key=len):
            if parts in self.folders:
                self._look_into(steps, parts)
        # What is known comes first: a flood of new folders takes nothing out of sight.
        while self._waiting and len(self.folders) < self._max_folders and self._entries < MAX_ENTRIES:
            pace.step()
            self._look_into(steps, self._waiting.popleft())
        steps.close()
        self.took_s = time.monotonic() - started

    def has_lost(self, parts: Parts) -> None:
        """A name was taken away: when it is there again, it is another one."""
        seen = self.folders.get(parts[:-1])
        if seen is not None:
            seen.found = tuple(entry for entry in seen.found if entry.name != parts[-1])
            self.version += 1

    def close(self) -> None:
        """Give the watches back. The kernel takes some ten milliseconds for it."""
        if self._watches is not None:
            self._watches.close()
            self._watches = None

    def _dirty(self, root_fd: int) -> Iterable[Parts]:
        changed = self._watches.changed() if self._watches is not None else None
        if changed is None:
            pace = Pace()
            dirty = {parts for parts, seen in self.folders.items() if not _is_same(root_fd, parts, seen, pace)}
            for parts in dirty:
                # Whether it is still watched is among what was not reported.
                self.folders[parts].watch = None
            return dirty
        found, gone = changed
        dirty = {self._by_watch[watch] for watch in (*found, *gone) if watch in self._by_watch}
        for watch in gone:
            lost = self.folders.get(self._by_watch.pop(watch, ()))
            if lost is not None and lost.watch == watch:
                lost.watch = None
        return dirty | self._again

    def _look_into(self, steps: Steps, parts: Parts) -> None:
        try:
            fd = steps.open(parts)
        except OSError as error:
            if error.errno in _GONE:
                self._drop(parts)
            else:
                is_shut = error.errno in (errno.EACCES, errno.EPERM)
                self._take(parts, self._unread(parts, is_shut=is_shut))
            return
        try:
            old = self.folders.get(parts)
            about = os.fstat(fd)
            if not about.st_mode & 0o100 and os.geteuid() != 0:
                # Its names can be read, and nothing about them.
                self._take(parts, self._unread(parts, is_shut=True))
                return
            watch = old.watch if old is not None and (old.device, old.inode) == (about.st_dev, about.st_ino) else None
            if self._watches is not None and watch is None:
                # Before its entries are read: what changes from here on is reported.
                watch = self._watches.add(fd, about.st_dev)
                if watch is None:
                    self._stop_watching()
                else:
                    self._by_watch[watch] = parts
            self._take(parts, self._read(fd, parts, about, watch))
        finally:
            os.close(fd)

    def _read(self, fd: int, parts: Parts, about: os.stat_result, watch: int | None) -> Seen:
        is_old = time.time_ns() - about.st_ctime_ns > _TICK_NS
        is_inside = self._is_inside(parts)
        judge = Judge(fd, (*self._above, *parts), self._rules, is_inside=is_inside)
        found: list[Entry] = []
        below: dict[str, int] = {}
        files = array("Q")
        size, most = 0, MAX_ENTRIES - self._entries
        is_deepest = len(parts) >= _MAX_DEPTH
        is_cut_short = False
        with os.scandir(fd) as entries:
            for entry in entries:
                size += 1
                if size > most:
                    is_cut_short = True
                    break
                mark = judge(entry)
                if mark is not None:
                    found.append(mark)
                if not entry.is_dir(follow_symlinks=False):
                    files.append(entry.inode())
                elif mark is None or mark.how != "hidden":
                    if is_deepest:
                        is_cut_short = True
                    else:
                        below[entry.name] = entry.inode()
        return Seen(
            about.st_dev, about.st_ino, about.st_ctime_ns, is_old, tuple(found), below, files, size, watch, True, is_cut_short,
            is_inside,
        )  # fmt: skip

    def _unread(self, parts: Parts, *, is_shut: bool) -> Seen:
        """A folder that cannot be looked into. One that is shut may be opened by a command, which may change its mode.

        What was seen in it before is not gone: back in sight, it would be taken for planted.
        """
        old = self.folders.get(parts)
        if is_shut and old is not None:
            return replace(old, is_settled=False, is_readable=False)
        return Seen(0, 0, 0, False, (), _NONE, array("Q"), 0, None, not is_shut, not is_shut)

    def _is_inside(self, parts: Parts) -> bool:
        """True for a folder that is protected or lies in one that is."""
        if not parts:
            return is_protected(self._above)
        above = self.folders.get(parts[:-1])
        if above is None:
            return is_protected(self.place(parts))
        return above.is_inside or any(entry.is_protected and entry.name == parts[-1] for entry in above.found)

    def _take(self, parts: Parts, seen: Seen) -> None:
        old = self.folders.get(parts)
        is_new_folder = old is None or (old.device, old.inode) != (seen.device, seen.inode)
        if old is None or is_new_folder or self._is_news(old, seen):
            self.version += 1
        self.folders[parts] = seen
        self._entries += seen.size - (0 if old is None else old.size)
        (self.noted.add if seen.found else self.noted.discard)(parts)
        if old is not None and old.watch is not None and old.watch != seen.watch:
            self._unwatch(old.watch, parts)
        self._remember(parts, old, seen)
        known = _NONE if old is None or is_new_folder else old.below
        for name in _NONE if old is None else old.below:
            if is_new_folder or seen.below.get(name) != known[name]:
                self._drop((*parts, name))
        for name in [name for name, inode in seen.below.items() if known.get(name) != inode]:
            if len(self._waiting) < _MAX_WAITING:
                self._waiting.append((*parts, name))
            else:
                del seen.below[name]
                seen.is_cut_short = True
        is_odd = seen.is_cut_short or not seen.is_readable
        (self._again.add if is_odd else self._again.discard)(parts)

    def _is_news(self, old: Seen, seen: Seen) -> bool:
        """True when what is closed may have changed: a file more is nothing, unless it is a secret's second name."""
        if (old.found, old.below, old.is_readable, old.is_cut_short) != (
            seen.found, seen.below, seen.is_readable, seen.is_cut_short
        ):  # fmt: skip
            return True
        return old.files != seen.files and any(
            entry.how == "hidden" and not entry.is_folder for parts in self.noted for entry in self.folders[parts].found
        )

    def _remember(self, parts: Parts, old: Seen | None, seen: Seen) -> None:
        """Note when the folder and its protected names were first seen, and which of them appeared just now."""
        self.first_seen.setdefault(parts, self.number)
        before = {entry.name: entry for entry in old.found} if old is not None else {}
        for entry in seen.found:
            if not entry.is_protected:
                continue
            path = (*parts, entry.name)
            was = before.pop(entry.name, None) or self._lost_links.pop(path, None)
            self.first_seen.setdefault(path, self.number)
            if path in self._gone:
                self.absent[path] = (self._gone.pop(path), self.number)
            # Not by its number alone: the number of a name that was removed is given to the next one.
            if self.running and was != entry:
                was_link = was is not None and was.how == "link" and was.target != entry.target
                self.fresh.append((path, was if was_link else None))
        for name, entry in before.items():
            self._gone[(*parts, name)] = self.number
            if self.running and entry.how == "link":
                self._lost_links[(*parts, name)] = entry

    def _drop(self, parts: Parts) -> None:
        stack = [parts]
        while stack:
            above = stack.pop()
            seen = self.folders.pop(above, None)
            if seen is None:
                continue
            self.version += 1
            self._entries -= seen.size
            self.noted.discard(above)
            self._again.discard(above)
            self._gone |= dict.fromkeys((above, *((*above, entry.name) for entry in seen.found)), self.number)
            stack.extend((*above, name) for name in seen.below)
            if seen.watch is not None:
                self._unwatch(seen.watch, above)

    def _forget_gone(self, newest: int) -> None:
        """Forget what is gone and was there for no command that runs now."""
        if not self.running:
            self._lost_links.clear()
        forgotten = [path for path in self._gone if self.first_seen.get(path, newest + 1) > newest]
        for path in forgotten:
            del self._gone[path]
            holder = self.folders.get(path[:-1])
            is_there = path in self.folders or (
                holder is not None and any(entry.name == path[-1] for entry in holder.found)
            )
            if not is_there:
                self.first_seen.pop(path, None)
        if not self.running:
            self.absent.clear()

    def _unwatch(self, watch: int, parts: Parts) -> None:
        # A folder that was moved has its watch under its new path already.
        if self._watches is not None and self._by_watch.get(watch) == parts:
            del self._by_watch[watch]
            self._watches.forget(watch)

    def _stop_watching(self) -> None:
        """There are too few watches, or a disk reports no changes: every folder is asked from now on."""
        self.close()
        self._by_watch.clear()
        for seen in self.folders.values():
            seen.watch = None


def _is_same(root_fd: int, parts: Parts, seen: Seen, pace: Pace) -> bool:
    """True when the folder is the one that was looked into and has not changed since."""
    pace.step()
    if not seen.is_settled or seen.is_cut_short:
        return False
    try:
        # A link on the way would lead to another folder, which has another number.
        now = os.stat("/".join(parts) or ".", dir_fd=root_fd, follow_symlinks=False)
    except OSError:
        return False
    return (now.st_dev, now.st_ino, now.st_ctime_ns) == (seen.device, seen.inode, seen.changed_ns)
