"""Landlock's system calls for the calling thread. Imports little: a program that is about to be replaced uses it, too."""

import ctypes
import os
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    Rule = tuple[str | int, int]
    """A path or a held descriptor, and the rights beneath it."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_FILE_RIGHTS = 0b111 | 1 << 14 | 1 << 15
"""Execute, write, read, truncate, ioctl. The kernel refuses a rule with any other right on a file."""
_TCP = 1 << 0 | 1 << 1
_O_PATH = getattr(os, "O_PATH", 0)


def restrict(rules: "list[Rule]", every: int, abi: int) -> None:
    """Allow this thread and its children only what the rules allow; `every` right is handled, and TCP is denied."""
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("QQ", every, _TCP)[: 16 if abi >= 4 else 8]
    ruleset = _checked(libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))
    try:
        for place, rights in rules:
            try:
                _allow(libc, ruleset, place, rights & every)
            except FileNotFoundError:
                continue
        _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, place: "str | int", rights: int) -> None:
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
