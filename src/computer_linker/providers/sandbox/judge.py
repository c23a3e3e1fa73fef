"""Classifies the entries of a folder: which matter to the boundary, and how each must be closed."""

import contextlib
import fnmatch
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from computer_linker.model.paths import PathRules
from computer_linker.policy import names
from computer_linker.policy.names import folded, is_git_folder, is_protected, is_sensitive
from computer_linker.system import os

Parts = tuple[str, ...]
How = Literal["read_only", "hidden", "socket", "link"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A relevant name. `socket`: hidden where the network is cut. `link`: a protected name no mount can close."""

    name: str
    how: How
    is_folder: bool
    device: int
    inode: int
    is_protected: bool = False
    """It begins a protected path: created by a command, it is a planted name."""
    target: str = ""
    """The target of a link."""
    changed_ns: int = field(default=0, compare=False)


class Judge:
    """Classifies the entries of one open folder by the scope's rules. `place` is its path from the scope's root, and
    `is_inside` is true when it, or a folder above it, is protected."""

    def __init__(self, fd: int, place: Parts, rules: PathRules, *, is_inside: bool) -> None:
        self._fd = fd
        self._place = place
        self._rules = rules
        self._denied = _denied(rules.denied) if rules.denied else None
        self._is_inside = is_inside

    def __call__(self, entry: os.DirEntry[str]) -> Entry | None:
        """Classify the entry; None for an irrelevant one, as most are."""
        if self._denied is None and not may_matter(entry.name):
            return _socket(entry)
        parts = (*self._place, entry.name)
        is_closed = not self._rules.allow_sensitive and is_sensitive(parts)
        if not is_closed and self._denied is not None:
            is_closed = bool(self._denied.match("/".join(parts).casefold()))
        # The contents of a protected folder are closed with it.
        is_trusted = is_protected(parts) or parts in self._rules.programs
        protected = not self._rules.allow_protected and not self._is_inside and is_trusted
        if not is_closed and not protected:
            return _socket(entry)
        is_link = entry.is_symlink()
        if is_link and not protected:
            # A link's target is classified by its own name; only a trusted name could be redirected.
            return None
        try:
            about = entry.stat(follow_symlinks=False)
            target = os.readlink(entry.name, dir_fd=self._fd) if is_link else ""
        except OSError:
            return None
        how: How = "link" if is_link else "hidden" if is_closed else "read_only"
        return _entry(entry.name, how, about, is_protected=protected, target=target)


@lru_cache(maxsize=65_536)
def may_matter(name: str) -> bool:
    """True for a name that some rule closes by itself, or that can end a longer closed path."""
    return folded(name) in _vocabulary() or is_sensitive((name,)) or is_protected((name,))


def begins_at(parts: Parts) -> int:
    """The index at which the protected path that ends `parts` begins: 1 for `a/.git`, 0 for `.config/autostart`."""
    if not is_protected(parts):
        # Of a repository without a `.git`.
        return len(parts) - 1
    return next((at for at in range(len(parts) - 1, 0, -1) if is_protected(parts[at:])), 0)


def of_bare_repository(fd: int, entries: dict[str, os.DirEntry[str]]) -> list[Entry]:
    """Entries that git would execute or obey in an open folder that it treats as a repository.

    Only `HEAD` counts as planted: without it the folder is no repository, and the others may exist for another reason.
    """
    if not is_git_folder(entries):
        return []
    found: list[Entry] = []
    for name in sorted(entries.keys() - {"objects", "refs"}):
        try:
            about = entries[name].stat(follow_symlinks=False)
            target = os.readlink(name, dir_fd=fd) if stat.S_ISLNK(about.st_mode) else ""
        except OSError:
            continue
        how: How = "link" if target else "read_only"
        found.append(_entry(name, how, about, is_protected=name == "HEAD", target=target))
    return found


def all_hidden(fd: int) -> list[Entry]:
    """Every entry of an open folder, each to be hidden."""
    found: list[Entry] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if not stat.S_ISLNK(about.st_mode):
                    found.append(_entry(entry.name, "hidden", about, is_protected=False, target=""))
    return found


def _entry(name: str, how: How, about: os.stat_result, *, is_protected: bool, target: str) -> Entry:
    is_folder = stat.S_ISDIR(about.st_mode)
    return Entry(name, how, is_folder, about.st_dev, about.st_ino, is_protected, target, about.st_ctime_ns)


def _socket(entry: os.DirEntry[str]) -> Entry | None:
    if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False) or entry.is_symlink():
        return None
    try:
        about = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return Entry(entry.name, "socket", False, about.st_dev, about.st_ino) if stat.S_ISSOCK(about.st_mode) else None


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    """Every name in the rule tables: a set lookup is forty times as fast as classifying a path in full."""
    return frozenset(name for table in vars(names).values() for name in _names_in(table))


def _names_in(table: object) -> Iterable[str]:
    if isinstance(table, str):
        yield table
    elif isinstance(table, frozenset | set | tuple | list):
        for part in table:
            yield from _names_in(part)
    elif isinstance(table, dict) and not any(key.startswith("__") for key in table if isinstance(key, str)):
        yield from _names_in(list(table.items()))


@lru_cache(maxsize=64)
def _denied(patterns: tuple[str, ...]) -> re.Pattern[str]:
    plain = [pattern.casefold().rstrip("/") for pattern in patterns]
    every = [*plain, *(pattern[:-3] for pattern in plain if pattern.endswith("/**"))]
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in every))
