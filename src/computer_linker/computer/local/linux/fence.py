"""Landlock rules for one child (what it may read, write and execute), applied without a helper program.

Landlock restricts the calling thread and its children. So a thread that exists only to start one child restricts itself
first; the child inherits the rules, and no other thread is affected. It costs some microseconds.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from computer_linker.computer.local.linux.kernel_rules import landlock_abi

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE = 1 << 14
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | 1 << 15
_TCP = 1 << 0 | 1 << 1
_O_PATH = getattr(os, "O_PATH", 0)


@dataclass(frozen=True, slots=True)
class Fence:
    """The allowed paths, by name or held descriptor. Everything else is denied, and so is TCP."""

    read: Sequence[str | int] = ()
    write: Sequence[str | int] = ()
    execute: Sequence[str | int] = ()


def fence_around(fence: Fence) -> Callable[[], None] | None:
    """A function that restricts the thread that calls it; None where the kernel has no Landlock."""
    abi = landlock_abi() if sys.platform == "linux" else 0
    if abi < 1:
        return None
    every = _every_right(abi)
    rules = [(place, _READ_FILE | _READ_DIR) for place in fence.read]
    rules += [(place, every & ~_EXECUTE) for place in fence.write]
    rules += [(place, _EXECUTE | _READ_FILE | _READ_DIR) for place in fence.execute]
    rules += [(device, _READ_FILE | _WRITE_FILE | _TRUNCATE) for device in ("/dev/null", "/dev/urandom", "/dev/random")]
    return lambda: _restrict(rules, every, abi)


def _every_right(abi: int) -> int:
    rights = (1 << 13) - 1
    for version, bit in ((2, 13), (3, 14), (5, 15)):
        if abi >= version:
            rights |= 1 << bit
    return rights


def _restrict(rules: list[tuple[str | int, int]], every: int, abi: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("QQ", every, _TCP)[: 16 if abi >= 4 else 8]
    ruleset = _checked(libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))
    try:
        for place, rights in rules:
            with suppress(FileNotFoundError):
                _allow(libc, ruleset, place, rights & every)
        _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, place: str | int, rights: int) -> None:
    fd = place if isinstance(place, int) else os.open(place, _O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, fd)
        _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        if not isinstance(place, int):
            os.close(fd)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
