"""Landlock and seccomp rules, compiled by the service and applied by the launcher in the child."""

import ctypes
import platform
import struct
from functools import lru_cache
from typing import Any

from computer_linker.computer.facets.processes import KernelRules
from computer_linker.computer.local.linux.syscall_filters import namespace_filter, network_filter
from computer_linker.errors import UnsupportedPlatform

_CREATE_RULESET = 444
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_TCP = 1 << 0 | 1 << 1
_SCOPES = 1 << 0 | 1 << 1
"""Abstract UNIX sockets and signals."""
_SCOPED = 6
"""The first version that restricts them (Linux 6.12)."""


@lru_cache(maxsize=1)
def landlock_abi() -> int:
    """The Landlock version of this kernel; 0 where there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)), 0)


def compiled(rules: KernelRules) -> dict[str, Any] | None:
    """The rules for the launcher to apply; None when none are requested or the kernel supports none."""
    landlock = _landlock(rules) if landlock_abi() >= 1 else None
    # Landlock does not restrict connect() to a path, such as the service's own socket, the session bus or docker's.
    is_filtered = rules.cut_network or rules.confine_files
    program = _known(network_filter(network=not rules.cut_network)) if is_filtered else b""
    if landlock is None and not program:
        return None
    return {"landlock": landlock, "seccomp": program.hex(), "drop": rules.confine_files}


def program_filter(rules: KernelRules, abi: int | None = None) -> bytes:
    """The seccomp program that a sandbox program applies once its own namespaces exist; `abi` is Landlock's version."""
    abi = landlock_abi() if abi is None else abi
    # In the machine's own network namespace only Landlock separates abstract sockets, those of the session among them.
    is_open = rules.confine_signals and not rules.confine_sockets and abi < _SCOPED
    program = namespace_filter(
        namespaces=not rules.confine_namespaces,
        unix_sockets=not (rules.cut_unix_sockets or is_open),
        other_sockets=not rules.confine_sockets,
        writes=not rules.confine_writes,
    )
    return _known(program)


def _known(program: bytes) -> bytes:
    if not program:
        raise UnsupportedPlatform(f"No filter of system calls is known for this processor ({platform.machine()[:40]}).")
    return program


def _landlock(rules: KernelRules) -> dict[str, Any] | None:
    abi = landlock_abi()
    files = _file_rights(abi) if rules.confine_files else 0
    network = _TCP if rules.cut_network and rules.confine_files and abi >= 4 else 0
    scopes = _SCOPES if rules.confine_signals and abi >= _SCOPED else 0
    if not (files or network or scopes):
        return None
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    attributes = struct.pack("QQQ", files, network, scopes)[:size]
    beneath: list[tuple[str | int, int]] = []
    if files:
        beneath += [(place, _READ) for place in rules.read]
        beneath += [(place, _READ_DIR) for place in rules.listed]
        beneath += [(place, _READ) for place in rules.read_root_fds]
        beneath += [(place, _WRITE_FILE | _READ_FILE) for place in _DEVICES]
        beneath += [(place, files) for place in rules.write]
        beneath += [(place, files) for place in rules.root_fds]
    return {"attributes": attributes.hex(), "beneath": beneath}


_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")


def _file_rights(abi: int) -> int:
    """Every right this version can restrict, so that whatever is not granted is refused."""
    rights = (1 << 13) - 1
    for version, bit in ((2, 13), (3, 14), (5, 15)):
        if abi >= version:
            rights |= 1 << bit
    return rights
