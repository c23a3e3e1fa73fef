"""Judge: which entries of a folder matter to the boundary, and how each must be closed."""

import fnmatch
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from computer_linker.model.paths import PathRules
from computer_linker.policy import names
from computer_linker.policy.names import folded, is_protected, is_sensitive

Parts = tuple[str, ...]
How = Literal["read_only", "hidden", "socket", "link"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A name that matters. `socket`: hidden where the network is cut. `link`: a protected name no mount can close."""

    name: str
    how: How
    is_folder: bool
    device: int
    inode: int
    is_protected: bool = False
    """It begins a protected place: made by a command, it is a planted name."""
    target: str = ""
    """Where a link leads."""


class Judge:
    """Judges the entries of one open folder by the scope's rules. `place` is its path from the scope's root, and
    `is_inside` says that it is protected, or lies in a folder that is."""

    def __init__(self, fd: int, place: Parts, rules: PathRules, *, is_inside: bool) -> None:
        self._fd = fd
        self._place = place
        self._rules = rules
        self._denied = _denied(rules.denied) if rules.denied else None
        self._is_inside = is_inside

    def __call__(self, entry: os.DirEntry[str]) -> Entry | None:
        """What the entry is to the boundary; None for the many that are nothing to it."""
        if self._denied is None and not may_matter(entry.name):
            return _socket(entry)
        parts = (*self._place, entry.name)
        is_closed = not self._rules.allow_sensitive and is_sensitive(parts)
        if not is_closed and self._denied is not None:
            is_closed = bool(self._denied.match("/".join(parts).casefold()))
        # What lies in a protected folder is closed with it.
        protected = not self._rules.allow_protected and not self._is_inside and is_protected(parts)
        if not is_closed and not protected:
            return _socket(entry)
        is_link = entry.is_symlink()
        if is_link and not protected:
            # What a link leads to is judged by its own name; only a trusted name could be turned elsewhere.
            return None
        try:
            about = entry.stat(follow_symlinks=False)
            target = os.readlink(entry.name, dir_fd=self._fd) if is_link else ""
        except OSError:
            return None
        how: How = "link" if is_link else "hidden" if is_closed else "read_only"
        return Entry(entry.name, how, stat.S_ISDIR(about.st_mode), about.st_dev, about.st_ino, protected, target)


@lru_cache(maxsize=65_536)
def may_matter(name: str) -> bool:
    """True for a name that is closed alone, or that some rule on a longer path could end with."""
    return folded(name) in _vocabulary() or is_sensitive((name,)) or is_protected((name,))


def begins_at(parts: Parts) -> int:
    """Where the protected place that ends a path begins: 1 for `a/.git`, 0 for `.config/autostart`."""
    return next((at for at in range(len(parts) - 1, 0, -1) if is_protected(parts[at:])), 0)


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
    """Every word in the tables of names: judging a path in full takes forty times as long as a look into a set."""
    return frozenset(word for table in vars(names).values() for word in _words(table))


def _words(table: object) -> Iterable[str]:
    if isinstance(table, str):
        yield table
    elif isinstance(table, frozenset | set | tuple | list):
        for part in table:
            yield from _words(part)
    elif isinstance(table, dict) and not any(key.startswith("__") for key in table if isinstance(key, str)):
        yield from _words(list(table.items()))


@lru_cache(maxsize=64)
def _denied(patterns: tuple[str, ...]) -> re.Pattern[str]:
    plain = [pattern.casefold().rstrip("/") for pattern in patterns]
    every = [*plain, *(pattern[:-3] for pattern in plain if pattern.endswith("/**"))]
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in every))
