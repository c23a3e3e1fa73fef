"""Landlock rules for one child (what it may read, write and execute), applied without a helper program.

Landlock restricts the calling thread and its children. So a thread that exists only to start one child restricts itself
first; the child inherits the rules, and no other thread is affected. It costs some microseconds.
"""

import os
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from computer_linker.computer.local.linux.kernel_rules import landlock_abi
from computer_linker.computer.local.linux.landlock_calls import restrict

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE = 1 << 14


@dataclass(frozen=True, slots=True)
class Fence:
    """The allowed paths, by name or held descriptor. Everything else is denied, and so is TCP."""

    read: Sequence[str | int] = ()
    write: Sequence[str | int] = ()
    execute: Sequence[str | int] = ()
    list: Sequence[str | int] = ()
    """Folders whose names may be listed, at any depth, without the files."""

    @property
    def held(self) -> tuple[int, ...]:
        """The descriptors among the paths to read and write."""
        places = dict.fromkeys((*self.read, *self.write, *self.list))
        return tuple(place for place in places if isinstance(place, int))


class FenceRules(NamedTuple):
    """A fence as the kernel takes it: the arguments of `restrict`."""

    rules: list[tuple[str | int, int]]
    every: int
    abi: int


def fence_rules(fence: Fence) -> FenceRules | None:
    """The rules of a fence; None where the kernel has no Landlock."""
    abi = landlock_abi() if sys.platform == "linux" else 0
    if abi < 1:
        return None
    every = _every_right(abi)
    rules = [(place, _READ_FILE | _READ_DIR) for place in fence.read]
    rules += [(place, _READ_DIR) for place in fence.list]
    rules += [(place, every & ~_EXECUTE) for place in fence.write]
    rules += [(place, _EXECUTE | _READ_FILE | _READ_DIR) for place in fence.execute]
    rules += [(device, _READ_FILE | _WRITE_FILE | _TRUNCATE) for device in ("/dev/null", "/dev/urandom", "/dev/random")]
    return FenceRules(rules, every, abi)


def fence_around(fence: Fence) -> Callable[[], None] | None:
    """A function that restricts the thread that calls it; None where the kernel has no Landlock."""
    found = fence_rules(fence)
    return None if found is None else partial(restrict, *found)


def start_without_links(fence: Fence) -> tuple[str, ...] | None:
    """What starts a program inside a fence for which links below its held folders lead nowhere; None on other systems.

    The program and its arguments follow, and it inherits `fence.held`.
    """
    if sys.platform != "linux":
        return None
    from computer_linker.computer.local.linux import no_links

    folders = [fd for fd in fence.held if stat.S_ISDIR(os.fstat(fd).st_mode)]
    return (sys.executable, "-I", "-S", no_links.__file__, no_links.order(folders, fence_rules(fence)))


def _every_right(abi: int) -> int:
    rights = (1 << 13) - 1
    for version, bit in ((2, 13), (3, 14), (5, 15)):
        if abi >= version:
            rights |= 1 << bit
    return rights
