"""Reads the head's hash without git, to decide whether a cached result about history is current."""

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

from computer_linker.providers.git.repository import Repository

T = TypeVar("T")
_HASH = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(rb"ref: (refs/heads/[^\s\0]{1,250})")
_MAX_PACKED = 4 << 20


class Memory:
    """A small cache of results that cannot change, because they are about commits of known hashes."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def recall(self, key: Hashable | None, make: Callable[[], T]) -> T:
        """The cached result, or a new one, which is cached unless there is no key."""
        if key is None:
            return make()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]  # type: ignore[no-any-return]  # a key has one type of result
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def history_key(repository: Repository) -> tuple[Hashable, ...] | None:
    """A cache key for the history reachable from the head; None where it cannot be determined."""
    head = head_of(repository)
    if head is None:
        return None
    info = os.fstat(repository.common)
    edges = tuple(_mark(name, repository.common) for name in ("shallow", "info/grafts", "config"))
    return (info.st_dev, info.st_ino, head, edges)


def head_of(repository: Repository) -> bytes | None:
    """The hash of the head, from its file and the branch's; None for anything unusual."""
    text = _content("HEAD", repository.git, 1024)
    if text is None:
        return None
    text = text.rstrip(b"\n")
    if _HASH.fullmatch(text):
        return text
    named = _REF.fullmatch(text)
    if named is None or b".." in named[1]:
        return None
    loose = _content(os.fsdecode(named[1]), repository.common, 1024)
    if loose is not None:
        loose = loose.rstrip(b"\n")
        return loose if _HASH.fullmatch(loose) else None
    packed = _content("packed-refs", repository.common, _MAX_PACKED) or b""
    found = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(named[1]) + rb"$", packed, re.MULTILINE)
    return found[1] if found else None


def _content(name: str, folder: int, limit: int) -> bytes | None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    try:
        text = os.read(fd, limit + 1)
        return text if len(text) <= limit else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _mark(name: str, folder: int) -> tuple[int, int, int] | None:
    try:
        info = os.lstat(name, dir_fd=folder)
    except OSError:
        return None
    return (info.st_ino, info.st_size, info.st_ctime_ns)
