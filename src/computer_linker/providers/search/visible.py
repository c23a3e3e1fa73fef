"""Filters the engine's results by the scope's rules and the caller's breadth, checked again for every path."""

import stat
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from computer_linker.computer.gitignore import IgnoreFile, is_ignored, parse_ignore
from computer_linker.model.paths import RootedPath
from computer_linker.policy.paths import is_hidden_by
from computer_linker.providers.held import Held, StateMarks
from computer_linker.providers.search.query import Breadth, Position, escaped
from computer_linker.providers.search.ripgrep import Fallback
from computer_linker.system import os

# The .gitignore files of a searched tree, for paths that ripgrep does not check itself. Read beneath a held folder.

_MAX_IGNORE_BYTES = 1_000_000
# O_NONBLOCK: the open of a pipe must not wait for a writer that may never come.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

Files = tuple[IgnoreFile, ...]


class Ignores:
    """Evaluates the .gitignore files of a folder and of the repository above it. Each is read once."""

    def __init__(self, folder: int, path: str) -> None:
        self._folder = folder
        self._prefix, above = _above(path)
        """From the topmost .gitignore down to the folder, written with a slash at its end."""
        self._files: dict[str, Files] = {"": self._within("", above)}
        self._folders: dict[str, bool] = {"": False}

    def leaves_out(self, path: str) -> bool:
        """True when this file, or a folder above it, is ignored."""
        parent = path.rpartition("/")[0]
        return self._leaves_out_folder(parent) or self._matches(parent, path, is_folder=False)

    def _leaves_out_folder(self, path: str) -> bool:
        known = self._folders.get(path)
        if known is None:
            parent = path.rpartition("/")[0]
            known = self._leaves_out_folder(parent) or self._matches(parent, path, is_folder=True)
            self._folders[path] = known
            self._files[path] = () if known else self._within(path + "/", self._files[parent])
        return known

    def _matches(self, parent: str, path: str, *, is_folder: bool) -> bool:
        return is_ignored(self._files[parent], self._prefix + path, is_folder=is_folder)

    def _within(self, inside: str, above: Files) -> Files:
        return (*above, *_read(inside + ".gitignore", self._folder, self._prefix + inside))


def ignore_files_above(path: str) -> list[str] | None:
    """The .gitignore files above a folder, nearest first, up to the top of its repository; None outside a repository."""
    found: list[str] = []
    while not os.path.lexists(path + "/.git"):
        path, _, name = path.rpartition("/")
        if not name:
            return None
        if os.path.isfile(path + "/.gitignore"):
            found.append(path + "/.gitignore")
    return found


def _above(path: str) -> tuple[str, Files]:
    """The path from the topmost applicable .gitignore down to the folder, and those files.

    They only exclude files, so it does not matter that some lie above the scope.
    """
    names = [name.removesuffix(".gitignore") for name in reversed(ignore_files_above(path) or ())]
    if not names:
        return "", ()
    top = len(names[0])
    files = (_read(name + ".gitignore", None, name[top:]) for name in names)
    return path[top:] + "/", tuple(file for found in files for file in found)


def _read(name: str, folder: int | None, base: str) -> Files:
    """The one file of this name; none when there is none that can be read."""
    try:
        fd = os.open(name, _READ, dir_fd=folder)
    except OSError:
        return ()
    try:
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        return (_parsed(os.read(fd, _MAX_IGNORE_BYTES), base),) if is_file else ()
    except OSError:
        return ()
    finally:
        os.close(fd)


@lru_cache(maxsize=256)
def _parsed(content: bytes, base: str) -> IgnoreFile:
    return parse_ignore(content.decode("utf-8", "surrogateescape").removeprefix("\ufeff"), base)


_MAX_DONE = 2000
_MAX_BESIDE = 10_000


@dataclass(slots=True)
class Visible:
    """Checks paths relative to the searched folder; caches the results for folders."""

    base: RootedPath
    breadth: Breadth
    ignores: Ignores | None
    states: StateMarks
    _known: dict[bytes, bool] = field(default_factory=dict)

    @classmethod
    def within(cls, folder: Held, breadth: Breadth, fallback: Fallback = Fallback.NONE) -> "Visible":
        # A glob makes ripgrep return matching ignored and hidden files, so both are checked again here.
        checks_ignores = breadth.gitignore and (breadth.glob is not None or fallback is not Fallback.NONE)
        return cls(
            folder.path,
            breadth,
            Ignores(folder.fd, real_path(folder)) if checks_ignores else None,
            StateMarks(folder.fd),
        )

    def __call__(self, path: bytes) -> bool:
        known = self._known.get(path)
        if known is None:
            if len(self._known) > 50_000:
                self._known.clear()
            known = self._known[path] = self._judge(path)
        return known

    def _judge(self, path: bytes) -> bool:
        text = os.fsdecode(path)
        names = tuple(text.split("/"))
        if not self.breadth.include_hidden and any(name.startswith(".") for name in names):
            return False
        if is_hidden_by((*self.base.parts, *names), self.base.rules) or self.states.cover(names[:-1]):
            return False
        return self.ignores is None or not self.ignores.leaves_out(text)


def real_path(folder: Held) -> str:
    """The folder's path in the file system, to examine its parents."""
    return "/".join((folder.path.root.rstrip("/"), *folder.path.parts))


@dataclass(frozen=True, slots=True)
class Shared:
    """Hard links among the found files: how many have other names, and which are names of a closed file."""

    count: int
    closed: set[bytes]


def shared(place: Held, paths: set[bytes]) -> Shared:
    """Find hard links among the results; a link to a closed file beside it, or at the root's top, is closed too."""
    numbers = {path: number for path in paths if (number := _shared_number(place, path)) is not None}
    known: dict[tuple[str, ...], set[int]] = {}
    closed: set[bytes] = set()
    for path, number in numbers.items():
        below = tuple(os.fsdecode(path).split("/"))[:-1] if place.is_folder else ()
        beside = (*place.path.parts, *below) if place.is_folder else place.path.parts[:-1]
        for parts in ((), beside):
            if parts not in known:
                known[parts] = _closed_numbers(place.path, parts)
            if number in known[parts]:
                closed.add(path)
    return Shared(len(numbers) - len(closed), closed)


def _shared_number(place: Held, path: bytes) -> int | None:
    try:
        found = os.stat(path, dir_fd=place.fd, follow_symlinks=False) if place.is_folder else os.fstat(place.fd)
    except OSError:
        return None
    return found.st_ino if found.st_nlink > 1 else None


def _closed_numbers(path: RootedPath, parts: tuple[str, ...]) -> set[int]:
    with suppress(OSError), os.scandir("/".join((path.root, *parts))) as entries:
        beside = islice(entries, _MAX_BESIDE)
        return {entry.inode() for entry in beside if is_hidden_by((*parts, entry.name), path.rules)}
    return set()


def already_answered(folder: int, after: Position | None) -> tuple[str, ...]:
    """Globs of what sorts before `after`, so that a continued search skips it; empty when too many."""
    if after is None:
        return ()
    globs: list[str] = []
    prefix = "/"
    for name in after[0]:
        try:
            for other in _names(folder, prefix):
                if other < name:
                    globs.append(prefix + escaped(other.decode("utf-8")))
                    if len(globs) > _MAX_DONE:
                        return ()
            prefix += escaped(name.decode("utf-8")) + "/"
        except (OSError, UnicodeDecodeError):
            return tuple(globs)
    return tuple(globs)


def _names(folder: int, prefix: str) -> list[bytes]:
    path = prefix.strip("/").replace("\\", "") or "."
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(fd) as entries:
            return [os.fsencode(entry.name) for entry in entries]
    finally:
        os.close(fd)
