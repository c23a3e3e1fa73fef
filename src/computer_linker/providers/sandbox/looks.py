"""What was seen in the folders below a root, so that a whole tree need not be looked through for every command.

A folder whose change time stands still holds the same names: nobody can set that time, only the kernel does.
"""

import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from computer_linker.policy.names import PROTECTED_NAMES, folded
from computer_linker.providers.sandbox.boundary import Folder

MAX_FOLDERS = 10_000
MAX_ENTRIES = 300_000
_MAX_DEPTH = 32
_MAX_ROOTS = 16
_SKIPPED = frozenset({"node_modules", "__pycache__", ".venv", "venv", ".tox", ".cache"})
_TOP_ONLY = frozenset({"target", "dist", "build", "vendor"})
"""What is made or copied there is too much to look through, but a copy of a secret lies at the top of it."""
_TICK_NS = 50_000_000
"""The kernel's clock for files is coarse: what changed so lately may change again and show the same time."""
_SLOW_S = 0.01

Parts = tuple[str, ...]
Stamp = tuple[int, int, int]


@dataclass(slots=True)
class Seen:
    """What one folder held that matters, and how it was stamped when it was looked at."""

    stamp: Stamp
    closed: list[tuple[str, str]] = field(default_factory=list)
    """How to close what, by its path from the root."""
    names: set[str] = field(default_factory=set)
    """The protected names that are there."""
    standing: list[Parts] = field(default_factory=list)
    """Placeholders of ours."""
    below: list[Parts] = field(default_factory=list)
    size: int = 0
    is_settled: bool = False


Judge = Callable[[Seen, Parts, os.DirEntry[str]], None]


class Looks:
    """The folders of the roots that commands run in, each looked at again only when it changed."""

    def __init__(self) -> None:
        self._roots: OrderedDict[object, dict[Parts, Seen]] = OrderedDict()
        self._took: dict[object, float] = {}

    def is_slow(self, folder: Folder) -> bool:
        """True when looking takes so long that it should not be done on the event loop."""
        return self._took.get(_key(folder), 1.0) > _SLOW_S

    def look(self, folder: Folder, judge: Judge) -> tuple[dict[Parts, Seen], bool]:
        """Every folder worth a look with what it holds now, and whether that is all of them."""
        started, key = time.monotonic(), _key(folder)
        known = self._roots.pop(key, {})
        found: dict[Parts, Seen] = {}
        is_whole = True
        for parts, seen in _walk(folder.fd, known, judge):
            if seen is None:
                is_whole = False
            else:
                found[parts] = seen
        self._roots[key] = found
        self._took[key] = time.monotonic() - started
        while len(self._roots) > _MAX_ROOTS:
            forgotten, _ = self._roots.popitem(last=False)
            self._took.pop(forgotten, None)
        return found, is_whole


def _key(folder: Folder) -> object:
    root = os.fstat(folder.fd)
    return root.st_dev, root.st_ino, folder.rules, folder.above


def _walk(root_fd: int, known: dict[Parts, Seen], judge: Judge) -> Iterator[tuple[Parts, Seen | None]]:
    """Folders breadth first; None where there are too many, or one lies too deep."""
    waiting: deque[Parts] = deque([()])
    folders = entries = 0
    while waiting:
        above = waiting.popleft()
        seen = _again(root_fd, above, known.get(above)) or _look_into(root_fd, above, judge, MAX_ENTRIES - entries)
        if seen is None:
            continue
        yield above, seen
        folders, entries = folders + 1, entries + seen.size
        if folders >= MAX_FOLDERS or entries >= MAX_ENTRIES:
            yield above, None
            return
        if len(above) + 1 < _MAX_DEPTH:
            waiting.extend(seen.below)
        elif seen.below:
            yield above, None


def _again(root_fd: int, parts: Parts, seen: Seen | None) -> Seen | None:
    """What was seen before, if the folder is the same and has not changed."""
    if seen is None or not seen.is_settled:
        return None
    try:
        # A link on the way would lead to another folder, which another stamp tells.
        now = os.stat("/".join(parts) or ".", dir_fd=root_fd, follow_symlinks=False)
    except OSError:
        return None
    return seen if (now.st_dev, now.st_ino, now.st_ctime_ns) == seen.stamp else None


def _look_into(root_fd: int, above: Parts, judge: Judge, most: int) -> Seen | None:
    # Opened only now: a folder of a thousand folders must not take a thousand descriptors.
    fd = open_below(root_fd, above)
    if fd is None:
        return None
    try:
        about = os.fstat(fd)
        seen = Seen((about.st_dev, about.st_ino, about.st_ctime_ns))
        is_old = time.time_ns() - about.st_ctime_ns > _TICK_NS
        with os.scandir(fd) as entries:
            for entry in entries:
                seen.size += 1
                if above and seen.size > most:
                    break
                parts = (*above, entry.name)
                judge(seen, parts, entry)
                if _is_worth_a_look(entry, above):
                    seen.below.append(parts)
        # A placeholder may turn into a folder of somebody's without its parent changing.
        seen.is_settled = is_old and not seen.standing
        return seen
    finally:
        os.close(fd)


def _is_worth_a_look(entry: os.DirEntry[str], above: Parts) -> bool:
    if entry.name in _SKIPPED or (above and above[-1] in _TOP_ONLY) or not entry.is_dir(follow_symlinks=False):
        return False
    return folded(entry.name) not in PROTECTED_NAMES


def open_below(root_fd: int, parts: Parts) -> int | None:
    """Hold a folder below the root, reached without following links; None when there is none."""
    fd: int | None = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=root_fd)
    for name in parts:
        above, fd = fd, _open_folder(name, fd) if fd is not None else None
        if above is not None:
            os.close(above)
    return fd


def _open_folder(name: str, fd: int) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    except OSError:
        return None
