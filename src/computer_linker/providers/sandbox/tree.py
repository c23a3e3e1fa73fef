"""The scanned contents of the folders below a root, updated incrementally.

Every folder is read. Where the kernel reports changes (see watches.py), a further scan costs only what changed.
Elsewhere the change time of each known folder is checked, which only the kernel can set: while it is unchanged, the
folder holds the same names.

A tree is used by one thread at a time, which holds its lock.
"""

import contextlib
import errno
import time
from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import anyio

from computer_linker.home import MARK_NAME
from computer_linker.policy.names import GIT_NAMES, is_protected
from computer_linker.providers.sandbox.boundary import Folder
from computer_linker.providers.sandbox.folder_state import FolderState, is_same
from computer_linker.providers.sandbox.judge import Entry, Judge, Parts, all_hidden, of_bare_repository
from computer_linker.providers.sandbox.pace import Pace
from computer_linker.providers.sandbox.steps import Steps, is_shut, opened_up
from computer_linker.providers.sandbox.watches import Watches
from computer_linker.system import os

MAX_FOLDERS = 60_000
MAX_ENTRIES = 1_000_000
_MAX_DEPTH = 64
_MAX_WAITING = 200_000
_TICK_NS = 50_000_000
"""The kernel's clock for files is coarse: what changed so lately may change again and show the same time."""
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_NONE: dict[str, int] = {}
Identity = tuple[int, int]
"""A device and an inode."""


class FirstSeen(NamedTuple):
    """When and where a folder or protected name was first seen."""

    scan: int
    path: Parts
    changed_ns: int
    """Its change time then: never earlier than its birth."""


class Tree:
    """One root under one set of rules: its folders, and when each folder and protected name was first seen."""

    def __init__(self, folder: Folder, max_folders: int = MAX_FOLDERS, max_entries: int = MAX_ENTRIES) -> None:
        self._max_folders = max_folders
        self._max_entries = max_entries
        self._rules = folder.rules
        self._above = folder.above
        self._watches = Watches.open()
        self._waiting: deque[Parts] = deque([()])
        """Folders that exist and were not read yet."""
        self._entries = 0
        self._again: set[Parts] = set()
        """Folders to read at every scan: the kernel does not report what would change the result."""
        self._reported: set[Parts] = set()
        """Folders that the kernel reported for the current scan."""
        self._gone: dict[Parts, int] = {}
        """Removed paths, with the number of the scan that found them gone."""
        self._by_watch: dict[int, Parts] = {}
        self._lost_links: dict[Parts, Entry] = {}
        self.folders: dict[Parts, FolderState] = {}
        self.noted: set[Parts] = set()
        """Folders with relevant entries."""
        self.first_seen: dict[Parts, int] = {}
        """The scan that first saw a folder or protected name; also for removed ones, where a running command saw them."""
        self.known: dict[Identity, FirstSeen] = {}
        """How each folder and protected name was first seen, whatever its name is now."""
        self._lost: set[Identity] = set()
        """Those of them that are gone."""
        self.absent: dict[Parts, tuple[int, int]] = {}
        """Protected names that are back: the scan that found them gone, and the one that found them again."""
        self.fresh: list[tuple[Parts, Entry | None]] = []
        """Protected names that appeared while commands run, with the link that was there before."""
        self.number = 0
        """The number of scans so far."""
        self.version = 0
        """Incremented when a scan found a change."""
        self.running: dict[object, int] = {}
        """Running commands, with the scan each was started after."""
        self.kept: dict[object, tuple[int, Any]] = {}
        """Cached masks, with the version they were computed from."""
        self.states: set[Parts] = set()
        """State folders of other services: everything in them is hidden."""
        self.took_s = 0.0
        self.lock = anyio.Lock()
        """Serialises scans."""

    @property
    def is_watched(self) -> bool:
        return self._watches is not None

    def place(self, parts: Parts) -> Parts:
        """The path from the scope's root."""
        return (*self._above, *parts)

    def is_quiet(self) -> bool:
        """True when nothing changed since the last scan; False where only a scan can tell."""
        return self._watches is not None and not self._again and not self._waiting and self._watches.is_quiet()

    def partly_read(self) -> list[Parts]:
        """Folders that hold entries that were not read."""
        return [*self._waiting, *(parts for parts in self._again if self.folders[parts].is_cut_short)]

    def unreadable(self) -> list[Parts]:
        """Folders that cannot be read now. A command could change that: it has the same rights."""
        return [parts for parts in self._again if not self.folders[parts].is_readable]

    def scan(self, root_fd: int) -> None:
        """Update the tree to the root's present contents."""
        started = time.monotonic()
        steps, pace = Steps(root_fd), Pace()
        self.number += 1
        self._forget_gone(max(self.running.values(), default=0))
        # Shallow first: the contents of a removed folder need not be checked.
        for parts in sorted(self._dirty(root_fd), key=len):
            if parts in self.folders:
                self._read_waiting(steps, parts)
        # Known folders first, so that a flood of new ones cannot delay them.
        while self._waiting and len(self.folders) < self._max_folders and self._entries < self._max_entries:
            pace.step()
            self._read_waiting(steps, self._waiting.popleft())
        steps.close()
        self.took_s = time.monotonic() - started

    def has_lost(self, parts: Parts, link: Entry | None) -> None:
        """Record that a name was removed: when it appears again, it is a new one; unless it is the `link` put back there."""
        seen = self.folders.get(parts[:-1])
        if seen is not None:
            self._lost |= {(entry.device, entry.inode) for entry in seen.found if entry.name == parts[-1]}
            others = tuple(entry for entry in seen.found if entry.name != parts[-1])
            seen.found = others if link is None else (*others, link)
            self.version += 1
        if link is not None:
            self.absent.pop(parts, None)
        else:
            # Else a later command, started after the scan that first saw it, could create it and keep it.
            self._gone[parts] = self.number

    def close(self) -> None:
        """Release the watches, which takes the kernel some ten milliseconds."""
        if self._watches is not None:
            self._watches.close()
            self._watches = None

    def _dirty(self, root_fd: int) -> Iterable[Parts]:
        changed = self._watches.changed() if self._watches is not None else None
        if changed is None:
            pace = Pace()
            dirty = {parts for parts, seen in self.folders.items() if not is_same(root_fd, parts, seen, pace)}
            for parts in dirty:
                # The overflow may also have lost the event that its watch ended.
                self.folders[parts].watch = None
            return dirty
        found, gone = changed
        dirty = self._reported = {self._by_watch[watch] for watch in (*found, *gone) if watch in self._by_watch}
        for watch in gone:
            lost = self.folders.get(self._by_watch.pop(watch, ()))
            if lost is not None and lost.watch == watch:
                lost.watch = None
        return dirty | self._again

    def _read_waiting(self, steps: Steps, parts: Parts) -> None:
        try:
            fd = steps.open(parts)
        except OSError as error:
            if error.errno in _GONE:
                self._drop(parts)
            elif not is_shut(error):
                self._take(parts, self._unread(parts, is_shut=False))
            else:
                self._scan_shut(steps.root, parts)
            return
        try:
            if not os.fstat(fd).st_mode & 0o100 and os.geteuid() != 0:
                # Its names can be listed, but not their attributes.
                self._scan_shut(steps.root, parts)
            else:
                self._take(parts, self._scanned(fd, parts))
        finally:
            os.close(fd)

    def _scan_shut(self, root_fd: int, parts: Parts) -> None:
        """Read a folder whose mode denies access: a running command may have planted something in it and shut it.

        One that was shut before any command ran is left alone.
        """
        old = self.folders.get(parts)
        was_shut = old is not None and not old.inode
        is_known = old is not None and not old.is_readable and old.watch is not None and parts not in self._reported
        seen = self._unread(parts, is_shut=True)
        if self.running and not was_shut and not is_known:
            with contextlib.suppress(OSError), opened_up(root_fd, parts) as fd:
                seen = replace(self._scanned(fd, parts), is_readable=False, is_settled=False)
        self._take(parts, seen)

    def _scanned(self, fd: int, parts: Parts) -> FolderState:
        """Watch an open folder, then read it."""
        old, about = self.folders.get(parts), os.fstat(fd)
        watch = old.watch if old is not None and (old.device, old.inode) == (about.st_dev, about.st_ino) else None
        if self._watches is not None and watch is None:
            # Before its entries are read: what changes from here on is reported.
            watch = self._watches.add(fd, about.st_dev)
            if watch is None:
                self._stop_watching()
            else:
                self._by_watch[watch] = parts
        return self._read(fd, parts, about, watch)

    def _read(self, fd: int, parts: Parts, about: os.stat_result, watch: int | None) -> FolderState:
        is_old = time.time_ns() - about.st_ctime_ns > _TICK_NS
        is_inside = self._is_inside(parts)
        judge = Judge(fd, (*self._above, *parts), self._rules, is_inside=is_inside)
        found: list[Entry] = []
        below: dict[str, int] = {}
        of_git: dict[str, os.DirEntry[str]] = {}
        files = array("Q")
        old, pace = self.folders.get(parts), Pace()
        size, most = 0, self._max_entries - self._entries + (0 if old is None else old.size)
        is_deepest = len(parts) >= _MAX_DEPTH
        is_cut_short = is_state = False
        with os.scandir(fd) as entries:
            for entry in entries:
                is_state = is_state or entry.name == MARK_NAME
                mark = judge(entry)
                if mark is not None:
                    found.append(mark)
                elif entry.name in GIT_NAMES:
                    of_git[entry.name] = entry
                if size >= most:
                    # The rest is not stored, but a flood of files must not hide a planted name.
                    is_cut_short = True
                    pace.step()
                    continue
                size += 1
                if not entry.is_dir(follow_symlinks=False):
                    files.append(entry.inode())
                elif mark is None or mark.how != "hidden":
                    if is_deepest:
                        is_cut_short = True
                    else:
                        below[entry.name] = entry.inode()
        if of_git and not is_inside and not self._rules.allow_protected:
            found += of_bare_repository(fd, of_git)
        (self.states.add if is_state else self.states.discard)(parts)
        if is_state:
            found, below = all_hidden(fd), {}
        return FolderState(
            about.st_dev, about.st_ino, about.st_ctime_ns, is_old, tuple(found), below, files, size, watch, True, is_cut_short,
            is_inside,
        )  # fmt: skip

    def _unread(self, parts: Parts, *, is_shut: bool) -> FolderState:
        """The state of an unreadable folder. A command may open one that is shut by changing its mode.

        Its earlier entries do not count as removed: when readable again, they would be treated as planted.
        """
        old = self.folders.get(parts)
        if is_shut and old is not None:
            return replace(old, is_settled=False, is_readable=False)
        return FolderState(0, 0, 0, False, (), _NONE, array("Q"), 0, None, not is_shut, not is_shut)

    def _is_inside(self, parts: Parts) -> bool:
        """True for a folder that is protected or below a protected one."""
        if not parts:
            return is_protected(self._above)
        above = self.folders.get(parts[:-1])
        if above is None:
            return is_protected(self.place(parts))
        return above.is_inside or any(entry.is_protected and entry.name == parts[-1] for entry in above.found)

    def _take(self, parts: Parts, seen: FolderState) -> None:
        old = self.folders.get(parts)
        is_new_folder = old is None or (old.device, old.inode) != (seen.device, seen.inode)
        if old is None or is_new_folder or self._is_news(old, seen):
            self.version += 1
        self.folders[parts] = seen
        self._entries += seen.size - (0 if old is None else old.size)
        (self.noted.add if seen.found else self.noted.discard)(parts)
        if old is not None and old.watch is not None and old.watch != seen.watch:
            self._unwatch(old.watch, parts)
        self._record_first_scan(parts, old, seen)
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

    def _is_news(self, old: FolderState, seen: FolderState) -> bool:
        """True when the masks may have changed: a new file does not matter unless it is a secret's hard link."""
        if (old.found, old.below, old.is_readable, old.is_cut_short) != (
            seen.found, seen.below, seen.is_readable, seen.is_cut_short
        ):  # fmt: skip
            return True
        return old.files != seen.files and any(
            entry.how == "hidden" and not entry.is_folder for parts in self.noted for entry in self.folders[parts].found
        )

    def _record_identity(self, identity: Identity, parts: Parts, changed_ns: int) -> None:
        """Record the identity of a folder or name, while a command may rename it."""
        first = FirstSeen(self.number, parts, changed_ns)
        if not self.running:
            self.known[identity] = first
        else:
            self.known.setdefault(identity, first)
        self._lost.discard(identity)

    def _record_first_scan(self, parts: Parts, old: FolderState | None, seen: FolderState) -> None:
        """Record when the folder and its protected names were first seen, and which of them are new."""
        self.first_seen.setdefault(parts, self.number)
        if seen.inode:
            self._record_identity((seen.device, seen.inode), parts, seen.changed_ns)
        before = {entry.name: entry for entry in old.found} if old is not None else {}
        for entry in seen.found:
            if not entry.is_protected:
                continue
            path = (*parts, entry.name)
            was = before.pop(entry.name, None) or self._lost_links.pop(path, None)
            self.first_seen.setdefault(path, self.number)
            self._record_identity((entry.device, entry.inode), path, entry.changed_ns)
            if path in self._gone:
                self.absent[path] = (self._gone.pop(path), self.number)
            # Not by its inode alone: the inode of a removed name is reused.
            if self.running and was != entry:
                was_link = was is not None and was.how == "link" and was.target != entry.target
                self.fresh.append((path, was if was_link else None))
        for name, entry in before.items():
            self._lost.add((entry.device, entry.inode))
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
            self._lost |= {(seen.device, seen.inode), *((entry.device, entry.inode) for entry in seen.found)}
            self._gone |= dict.fromkeys((above, *((*above, entry.name) for entry in seen.found)), self.number)
            stack.extend((*above, name) for name in seen.below)
            if seen.watch is not None:
                self._unwatch(seen.watch, above)

    def _forget_gone(self, newest: int) -> None:
        """Drop removed entries that no running command saw."""
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
        for identity in list(self._lost):
            first = self.known.get(identity)
            if first is None or first.scan > newest:
                self._lost.discard(identity)
                self.known.pop(identity, None)
        if not self.running:
            self.absent.clear()

    def _unwatch(self, watch: int, parts: Parts) -> None:
        # A folder that was moved has its watch under its new path already.
        if self._watches is not None and self._by_watch.get(watch) == parts:
            del self._by_watch[watch]
            self._watches.forget(watch)

    def _stop_watching(self) -> None:
        """Check every folder from now on: there are too few watches, or a file system reports no changes."""
        self.close()
        self._by_watch.clear()
        for seen in self.folders.values():
            seen.watch = None
