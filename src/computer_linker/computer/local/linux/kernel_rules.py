"""Landlock and seccomp rules, compiled by the service and applied by the launcher in the child."""

import ctypes
import platform
import struct
from functools import lru_cache
from typing import Any

from computer_linker.computer.facets.processes import KernelRules
from computer_linker.errors import UnsupportedPlatform

_CREATE_RULESET = 444
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_TCP = 1 << 0 | 1 << 1
_SCOPES = 1 << 0 | 1 << 1
"""Abstract UNIX sockets and signals."""
_CALLS = {
    "x86_64": (0xC000003E, 41, 53),
    "aarch64": (0xC00000B7, 198, 199),
    "riscv64": (0xC00000F3, 198, 199),
    "loongarch64": (0xC0000102, 198, 199),
}
"""The seccomp architecture, and its numbers of socket and socketpair. Architectures with socketcall are excluded."""
_IO_URING_SETUP = 425
_SHARED_CALLS = ((29, 31), (64, 71), (220, 220), (248, 250))
_SHARED_CALLS_GENERIC = ((186, 197), (217, 219))
"""System V shared memory, semaphores and messages, and keyrings, on x86_64 and elsewhere; all programs of a user share them."""
_PRLIMIT, _PRLIMIT_GENERIC = 302, 261
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1
_UNIX = (1,)
_CUT_FAMILIES = (1, 2, 10, 16, 17, 40)
"""UNIX, IPv4, IPv6, netlink, packet, vsock. socketpair is another call, so pipes between children still work."""
_PAIRS = (1, 5)
"""Stream and seqpacket. One of a pair of datagram sockets could still send to any path."""


@lru_cache(maxsize=1)
def landlock_abi() -> int:
    """The Landlock version of this kernel; 0 where there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)), 0)


def compiled(rules: KernelRules) -> dict[str, Any] | None:
    """The rules for the launcher to apply; None when none are requested or the kernel supports none."""
    landlock = _landlock(rules) if landlock_abi() >= 1 else None
    # Landlock does not restrict connect() to a path, such as the service's own socket, the session bus or docker's.
    families = _CUT_FAMILIES if rules.cut_network else _UNIX if rules.confine_files else ()
    program = network_filter(families) if families else b""
    if families and not program:
        raise UnsupportedPlatform(f"No filter of system calls is known for this processor ({platform.machine()[:40]}).")
    if landlock is None and not program:
        return None
    return {"landlock": landlock, "seccomp": program.hex(), "drop": rules.confine_files}


def _landlock(rules: KernelRules) -> dict[str, Any] | None:
    abi = landlock_abi()
    files = _file_rights(abi) if rules.confine_files else 0
    network = _TCP if rules.cut_network and rules.confine_files and abi >= 4 else 0
    scopes = _SCOPES if rules.confine_signals and abi >= 6 else 0
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


def network_filter(families: tuple[int, ...] = _CUT_FAMILIES) -> bytes:
    """A seccomp program that refuses new sockets of these families (and io_uring, which could make them); empty where unknown.

    It also refuses what reaches other programs of the user past Landlock: shared memory, keyrings, and their resource limits,
    by which a process can be ended.
    """
    known = _CALLS.get(platform.machine())
    if known is None:
        return b""
    architecture, socket_call, pair_call = known
    code: list[tuple[int, int, int, int]] = [(0x20, 0, 0, 4), (0x15, 1, 0, architecture), (0x06, 0, 0, _REFUSE)]
    code += [(0x20, 0, 0, 0)]
    if platform.machine() == "x86_64":
        # The x32 calls have other numbers, which would bypass the list.
        code += [(0x35, 0, 1, 0x40000000), (0x06, 0, 0, _REFUSE)]
    code += [(0x15, 0, 1, _IO_URING_SETUP), (0x06, 0, 0, _REFUSE)]
    is_x86 = platform.machine() == "x86_64"
    for first, last in _SHARED_CALLS if is_x86 else _SHARED_CALLS_GENERIC:
        code += [(0x35, 0, 2, first), (0x25, 1, 0, last), (0x06, 0, 0, _REFUSE)]
    # Process 0 is the caller itself.
    code += [(0x15, 0, 4, _PRLIMIT if is_x86 else _PRLIMIT_GENERIC), (0x20, 0, 0, 16), (0x15, 1, 0, 0)]
    code += [(0x06, 0, 0, _REFUSE), (0x06, 0, 0, _ALLOW)]
    code += [(0x15, 0, 6, pair_call), (0x20, 0, 0, 24), (0x54, 0, 0, 0xF)]
    code += [(0x15, 2, 0, _PAIRS[0]), (0x15, 1, 0, _PAIRS[1]), (0x06, 0, 0, _REFUSE)]
    code += [(0x06, 0, 0, _ALLOW)]
    code += [(0x15, 1, 0, socket_call), (0x06, 0, 0, _ALLOW), (0x20, 0, 0, 16)]
    for family in families:
        code += [(0x15, 0, 1, family), (0x06, 0, 0, _REFUSE)]
    code += [(0x06, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *line) for line in code)
