"""seccomp programs: which system calls a command may make."""

import platform
import struct
from dataclasses import dataclass
from functools import lru_cache

_ALLOW, _REFUSE, _ABSENT, _UNSUPPORTED = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38, 0x00050000 | 95
_LOAD, _EQUAL, _ABOVE, _AT_LEAST, _HAS_BIT, _AND, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
"""Where a call's number, its architecture and the lower 32 bits of its arguments are."""
_NEW_USER_NAMESPACE = 0x10000000
_IO_URING_SETUP, _CLONE3 = 425, 435
_SNAPSHOTS = (0x50009401, 0x50009417)
"""Requests to btrfs for a snapshot, which would show what a mount covers under another path (linux/btrfs.h)."""
_X32 = 0x40000000
_UNIX = 1
_SEPARATED = (_UNIX, 2, 10, 16, 17, 38)
"""UNIX, IPv4, IPv6, netlink, packet: of a network namespace's own, or held by other means. And the kernel's ciphers. Of the
others some reach past every namespace: vsock the hypervisor and other machines on this one, Bluetooth what is near."""
_PAIRS = (1, 5)
"""Stream and seqpacket. One of a pair of datagram sockets could still send to any path."""
_SHARED_CALLS = ((29, 31), (64, 71), (220, 220), (240, 245), (248, 250))
_SHARED_CALLS_GENERIC = ((180, 197), (217, 219))
"""System V shared memory, semaphores and messages, POSIX message queues, and keyrings, on x86_64 and elsewhere; all programs of
a user share them."""
_OF_A_PROCESS = (302, 142, 144, 203, 314)
_OF_A_PROCESS_GENERIC = (261, 118, 119, 122, 274)
"""prlimit64, sched_setparam, sched_setscheduler, sched_setaffinity and sched_setattr: the first argument is a process."""
_PRIORITIES, _PRIORITIES_GENERIC = ((141, 0), (251, 1)), ((140, 0), (30, 1))
"""setpriority and ioprio_set, each with the value of its first argument for which the second one is a process."""
_WRITING = 0o3 | 0o100 | 0o1000
"""The flags of an open for writing, or one that makes or empties a file."""
_OPENS, _OPENS_GENERIC = ((2, _SECOND), (257, _THIRD)), ((56, _THIRD),)
"""open and openat, with the place of their flags."""
_CHANGING = (
    (76, 76), (85, 85), (90, 94), (132, 132), (188, 190), (197, 199), (235, 235), (260, 261), (268, 268), (280, 280), (304, 304),
)  # fmt: skip
_CHANGING_GENERIC = ((5, 7), (14, 16), (45, 45), (52, 55), (88, 88), (265, 265))
_CHANGING_NEW = ((437, 437), (452, 452), (463, 463), (466, 466), (469, 469))
"""What changes a file by its path or by a descriptor that only reads: truncate, creat, modes, owners, times, attributes; and
opens whose flags no filter can read (openat2, open_by_handle_at)."""
_SET_IDS = 0o6000
_FCHMODAT2 = 452
_FREES_SPACE = 0x02
"""The flag of fallocate for a hole (FALLOC_FL_PUNCH_HOLE). All other uses reserve space, or need a file system that does."""

_Code = list[tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True)
class _Calls:
    """One architecture, and its numbers of the calls that matter. `socketcall` is 0 where there is none."""

    architecture: int
    clone: int
    unshare: int
    ioctl: int
    socket: int
    socketpair: int
    modes: tuple[tuple[int, int], ...]
    """The calls that change a mode, with the place of that argument."""
    keys: tuple[int, int]
    """The first and the last call for keyrings."""
    fallocate: int
    socketcall: int = 0


def _modes(chmod: int, fchmod: int, fchmodat: int) -> tuple[tuple[int, int], ...]:
    by_two = tuple((call, _SECOND) for call in (chmod, fchmod) if call)
    return (*by_two, (fchmodat, _THIRD), (_FCHMODAT2, _THIRD))


_GENERIC = (220, 97, 29, 198, 199, _modes(0, 52, 53), (217, 219), 47)
_X86_64 = _Calls(0xC000003E, 56, 272, 16, 41, 53, _modes(90, 91, 268), (248, 250), 285)
_I386 = _Calls(0x40000003, 120, 310, 54, 359, 360, _modes(15, 94, 306), (286, 288), 324, 102)
_ARM64 = _Calls(0xC00000B7, *_GENERIC)
_ARM = _Calls(0x40000028, 120, 337, 54, 281, 288, _modes(15, 94, 333), (309, 311), 352, 102)
_CALLS = {
    "x86_64": (_X86_64, _I386),
    "aarch64": (_ARM64, _ARM),
    "riscv64": (_Calls(0xC00000F3, *_GENERIC),),
    "loongarch64": (_Calls(0xC0000102, *_GENERIC),),
    **dict.fromkeys(("i386", "i586", "i686"), (_I386,)),
    **dict.fromkeys(("armv6l", "armv7l", "armv8l"), (_ARM,)),
}
"""By machine: its own architecture, and the one of older programs that it runs, too."""


@lru_cache(maxsize=8)
def namespace_filter(*, namespaces: bool, unix_sockets: bool, other_sockets: bool, writes: bool = True) -> bytes:
    """A program for a finished sandbox, which refuses what is false here; empty where the machine is unknown.

    `namespaces`: new user namespaces, and snapshots of the disk. A closed name is held by a mount, and only in the mount
    namespace that has it. With a user namespace of its own a command could detach its root as a whole, and rename what was
    closed through a descriptor it kept. The C library starts threads and programs by `clone` where there is no `clone3`,
    whose flags no filter can read.
    `other_sockets`: sockets that no network namespace separates.
    `writes`: opening files for writing, and changing them otherwise. A descriptor that only reads can be opened again by its name
    in /proc, whatever is mounted in the sandbox. Programs of an older architecture are then refused as a whole.
    Keyrings are always refused, because the kernel bounds the keys of all of a user's programs together, and so are modes
    that make a program run with the rights of its owner: it would have them outside of the sandbox.
    """
    known = _CALLS.get(platform.machine(), ())[: None if writes else 1]
    refused = () if unix_sockets else (_UNIX,)
    allowed = None if other_sockets else tuple(family for family in _SEPARATED if family not in refused)
    code: _Code = [(_LOAD, 0, 0, _ARCHITECTURE)]
    for calls in known:
        section: _Code = [(_LOAD, 0, 0, _NUMBER), *(_no_x32() if calls is _X86_64 else ())]
        section += () if writes else _no_writes(calls)
        section += [*_refused(*calls.keys), *_no_set_ids(calls), *_no_reserving(calls)]
        section += () if namespaces else _no_namespaces(calls)
        section += () if allowed is None and not refused else _sockets(calls, refused, allowed)
        section += [(_RETURN, 0, 0, _ALLOW)]
        code += [(_EQUAL, 0, len(section), calls.architecture), *section]
    code += [(_RETURN, 0, 0, _REFUSE)]
    return _packed(code) if known else b""


def _no_namespaces(calls: _Calls) -> _Code:
    return [
        *((_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ABSENT)),
        *((_EQUAL, 1, 0, calls.clone), (_EQUAL, 0, 4, calls.unshare), (_LOAD, 0, 0, _FIRST)),
        *((_HAS_BIT, 0, 1, _NEW_USER_NAMESPACE), (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)),
        *((_EQUAL, 0, 5, calls.ioctl), (_LOAD, 0, 0, _SECOND)),
        *(
            (_EQUAL, 1, 0, _SNAPSHOTS[0]),
            (_EQUAL, 0, 1, _SNAPSHOTS[1]),
            (_RETURN, 0, 0, _REFUSE),
            (_RETURN, 0, 0, _ALLOW),
        ),
    ]


def _no_writes(calls: _Calls) -> _Code:
    is_x86 = calls is _X86_64
    code = [
        line for each in (*(_CHANGING if is_x86 else _CHANGING_GENERIC), *_CHANGING_NEW) for line in _refused(*each)
    ]
    for call, flags in _OPENS if is_x86 else _OPENS_GENERIC:
        code += [(_EQUAL, 0, 4, call), (_LOAD, 0, 0, flags)]
        code += [(_HAS_BIT, 0, 1, _WRITING), (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    return [*code, (_EQUAL, 0, 1, calls.ioctl), (_RETURN, 0, 0, _REFUSE)]


@lru_cache(maxsize=2)
def network_filter(*, network: bool) -> bytes:
    """A seccomp program that refuses new sockets: of any kind, or with `network` UNIX sockets alone; empty where unknown.

    It also refuses what reaches other programs of the user past Landlock: shared memory, keyrings, their resource limits, by
    which a process can be ended, and their priorities and processors, by which it is kept from running. And modes that make a
    program run with the rights of its owner.
    """
    calls = _CALLS.get(platform.machine(), (_I386,))[0]
    if calls.socketcall:
        return b""
    is_x86 = calls is _X86_64
    code: _Code = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, calls.architecture), (_RETURN, 0, 0, _REFUSE)]
    code += [(_LOAD, 0, 0, _NUMBER), *(_no_x32() if is_x86 else ())]
    for first, last in _SHARED_CALLS if is_x86 else _SHARED_CALLS_GENERIC:
        code += _refused(first, last)
    # Process 0 is the caller itself.
    for call in _OF_A_PROCESS if is_x86 else _OF_A_PROCESS_GENERIC:
        code += [(_EQUAL, 0, 4, call), (_LOAD, 0, 0, _FIRST), (_EQUAL, 1, 0, 0)]
        code += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    for call, process in _PRIORITIES if is_x86 else _PRIORITIES_GENERIC:
        code += [(_EQUAL, 0, 6, call), (_LOAD, 0, 0, _FIRST), (_EQUAL, 0, 2, process), (_LOAD, 0, 0, _SECOND)]
        code += [(_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    code += [*_no_set_ids(calls), *_no_reserving(calls)]
    code += [*_sockets(calls, (_UNIX,), None if network else ()), (_RETURN, 0, 0, _ALLOW)]
    return _packed(code)


def _refused(first: int, last: int) -> _Code:
    """Refuse the calls from the first to the last. A call's number is loaded, here and below."""
    return [(_AT_LEAST, 0, 2, first), (_ABOVE, 1, 0, last), (_RETURN, 0, 0, _REFUSE)]


def _no_set_ids(calls: _Calls) -> _Code:
    """Refuse modes with set-user-id or set-group-id. The kernel clears those bits when a file is written, so that a file made
    with them stays empty."""
    return [
        line
        for call, place in calls.modes
        for line in (
            *((_EQUAL, 0, 4, call), (_LOAD, 0, 0, place)),
            *((_HAS_BIT, 0, 1, _SET_IDS), (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)),
        )
    ]


def _no_reserving(calls: _Calls) -> _Code:
    """Let space be taken only by writing, which the kernel counts for each process: the disk watch goes by that.

    Programs write instead, as on the many file systems that reserve nothing.
    """
    return [
        *((_EQUAL, 0, 4, calls.fallocate), (_LOAD, 0, 0, _SECOND)),
        *((_HAS_BIT, 1, 0, _FREES_SPACE), (_RETURN, 0, 0, _UNSUPPORTED), (_RETURN, 0, 0, _ALLOW)),
    ]


def _no_x32() -> _Code:
    """Refuse the x32 calls, which have other numbers and would bypass the list."""
    return [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _REFUSE)]


def _sockets(calls: _Calls, refused: tuple[int, ...], allowed: tuple[int, ...] | None) -> _Code:
    """Refuse sockets of some families, or all that are not allowed, and what could make them unseen. A call's number is loaded.

    socketpair is another call, so pipes between children still work.
    """
    unseen = (_IO_URING_SETUP, *((calls.socketcall,) if calls.socketcall else ()))
    code: _Code = [line for call in unseen for line in ((_EQUAL, 0, 1, call), (_RETURN, 0, 0, _REFUSE))]
    if _UNIX in refused:
        code += [(_EQUAL, 0, 6, calls.socketpair), (_LOAD, 0, 0, _SECOND), (_AND, 0, 0, 0xF), (_EQUAL, 2, 0, _PAIRS[0])]
        code += [(_EQUAL, 1, 0, _PAIRS[1]), (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    code += [(_EQUAL, 1, 0, calls.socket), (_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, _FIRST)]
    code += [line for each in refused for line in ((_EQUAL, 0, 1, each), (_RETURN, 0, 0, _REFUSE))]
    if allowed is None:
        return code
    code += [line for each in allowed for line in ((_EQUAL, 0, 1, each), (_RETURN, 0, 0, _ALLOW))]
    return [*code, (_RETURN, 0, 0, _REFUSE)]


def _packed(code: _Code) -> bytes:
    return b"".join(struct.pack("HBBI", *line) for line in code)
