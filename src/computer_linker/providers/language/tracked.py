"""The files of a root as a language server was last told of them, and what changed since.

The kernel reports a change when it is made, so what a call finds changed is all that was changed before it, through the service
or past it. Folders that cannot be watched are listed again at every call.
"""

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from computer_linker.model.paths import PathRules
from computer_linker.policy.paths import is_hidden_by
from computer_linker.providers.sandbox.watches import Watches
from computer_linker.system import os

MAX_FOLDERS = 20_000
_MAX_DEPTH = 48
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Installed or generated code: a server reads it, and hardly anything edits it while the server runs."""

Parts = tuple[str, ...]
Mark = tuple[int, int, int]
Kind = Literal["created", "changed", "deleted"]


@dataclass(slots=True)
class _Folder:
    files: dict[str, Mark]
    folders: set[str]
    watch: int | None


class Tracked:
    """The tracked files of one root; used by one thread at a time."""

    def __init__(self, root: str, rules: PathRules, most: int = MAX_FOLDERS) -> None:
        self._root, self._rules, self._most = root, rules, most
        self._watches = Watches.open(contents=True)
        self._folders: dict[Parts, _Folder] = {}
        self._by_watch: dict[int, Parts] = {}
        self.is_partial = False
        """True where the root holds more folders than are tracked."""
        self._found: dict[Parts, Kind] = {}

    def is_quiet(self) -> bool:
        """True when nothing changed since the last `changes`; takes microseconds."""
        is_watched = self._watches is not None and len(self._by_watch) == len(self._folders) > 0
        return is_watched and self._watches is not None and self._watches.is_quiet()

    def has(self, parts: Parts) -> bool:
        """True for a regular file that is tracked: while it is quiet, that file is as it was. Not for links, nor through one."""
        folder = self._folders.get(parts[:-1])
        return folder is not None and folder.watch is not None and parts[-1] in folder.files

    def changes(self) -> dict[Parts, Kind]:
        """What changed since the last call; everything that exists counts as created at the first one. Blocking."""
        self._found = {}
        try:
            top = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            self._drop(())
            return self._found
        try:
            for parts in self._dirty():
                self._update(top, parts)
        finally:
            os.close(top)
        return self._found

    def close(self) -> None:
        if self._watches is not None:
            self._watches.close()
            self._watches = None

    def _dirty(self) -> list[Parts]:
        changed = None if self._watches is None or not self._folders else self._watches.changed()
        if changed is None:
            return sorted(self._folders, key=len) if self._folders else [()]
        found, gone = changed
        dirty = {self._by_watch[watch] for watch in (*found, *gone) if watch in self._by_watch}
        for watch in gone:
            lost = self._folders.get(self._by_watch.pop(watch, ()))
            if lost is not None and lost.watch == watch:
                lost.watch = None
        dirty |= (
            {parts for parts, folder in self._folders.items() if folder.watch is None}
            if len(self._by_watch) < len(self._folders)
            else set()
        )
        return sorted(dirty, key=len)

    def _update(self, top: int, parts: Parts) -> None:
        """Compare one folder with what is known of it, and read those that are new in it."""
        waiting = [parts]
        while waiting:
            at = waiting.pop()
            old = self._folders.get(at)
            fd = _opened(top, at)
            if fd is None:
                self._drop(at)
                continue
            try:
                new = self._read(fd, at, old)
            finally:
                os.close(fd)
            known = {} if old is None else old.files
            for name, mark in new.files.items():
                if known.get(name) != mark:
                    self._found[(*at, name)] = "changed" if name in known else "created"
            for name in known.keys() - new.files.keys():
                self._found[(*at, name)] = "deleted"
            for name in set() if old is None else old.folders - new.folders:
                self._drop((*at, name))
            self._folders[at] = new
            waiting += [(*at, name) for name in new.folders if (*at, name) not in self._folders]
            if len(self._folders) > self._most:
                self.is_partial = True
                return

    def _read(self, fd: int, at: Parts, old: _Folder | None) -> _Folder:
        """List a folder, watched first, so that nothing that changes meanwhile is missed."""
        watch = None if old is None else old.watch
        if watch is None and self._watches is not None:
            watch = self._watches.add(fd, os.fstat(fd).st_dev)
            if watch is not None:
                self._by_watch[watch] = at
        files: dict[str, Mark] = {}
        folders: set[str] = set()
        for name, mode, mark in _entries(fd):
            if is_hidden_by((*at, name), self._rules):
                continue
            if stat.S_ISREG(mode):
                files[name] = mark
            elif stat.S_ISDIR(mode) and len(at) < _MAX_DEPTH and not name.startswith(".") and name not in _SKIPPED:
                folders.add(name)
        if "pyvenv.cfg" in files:
            files, folders = {"pyvenv.cfg": files["pyvenv.cfg"]}, set()
        return _Folder(files, folders, watch)

    def _drop(self, parts: Parts) -> None:
        for at in [at for at in self._folders if at[: len(parts)] == parts]:
            gone = self._folders.pop(at)
            self._found.update({(*at, name): "deleted" for name in gone.files})
            if (
                gone.watch is not None
                and self._by_watch.pop(gone.watch, None) is not None
                and self._watches is not None
            ):
                self._watches.forget(gone.watch)


def _entries(fd: int) -> Iterator[tuple[str, int, Mark]]:
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                yield entry.name, found.st_mode, (found.st_ino, found.st_size, found.st_mtime_ns)
    except OSError:
        return


def _opened(top: int, parts: Parts) -> int | None:
    """Open a folder name by name, without following links."""
    fd = os.dup(top)
    for name in parts:
        above = fd
        try:
            fd = os.open(name, _FOLDER, dir_fd=above)
        except OSError:
            return None
        finally:
            os.close(above)
    return fd
