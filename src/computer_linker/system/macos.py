"""Peers of sockets, processes by id and paths of descriptors, on macOS. Run on a stand-in only (`make test-macos-shim`)."""

import errno
import fcntl
import os
import struct
import time
from _socket import socket
from typing import TYPE_CHECKING, NamedTuple

from computer_linker.system.unix import (
    KEPT_VARIABLES,
    Detached,
    Output,
    channel,
    end_group,
    is_elevated,
    is_program_name,
    lock,
    make_private_folders,
    program_names,
    refused_name,
    relay,
    rename_new,
    slashed,
    try_lock,
    unlock,
    write_all,
)

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable

__all__ = [
    "KEPT_VARIABLES", "Detached", "Output", "all_pids", "attributes", "boot_id", "channel", "comes_from_below", "copy_range",
    "cwd_of", "descriptor_path", "end_group", "is_elevated", "is_program_name", "is_running", "link_descriptor", "lock",
    "make_private_folders", "peer_ids", "process", "process_name", "program_names", "refused_name", "relay",
    "remove_attribute", "rename_new", "set_attribute", "slashed", "started_at", "sync", "sync_data", "try_lock",
    "unlock", "wait_unreaped", "write_all",
]  # fmt: skip
_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID = 0, 0x001, 0x002
"""From sys/un.h; the standard library defines none of them."""
_CREDENTIALS = "IIh2x16I"
"""struct xucred: version, uid, count of groups, groups."""
_PIDTASKALLINFO, _PIDTBSDINFO = 2, 3
_NEW_PIDS = 64
"""Room for processes that start between counting and listing."""
_BSD_INFO = "<5I I 20x 4x16s32s24xQQ"
"""struct proc_bsdinfo (sys/proc_info.h): flags, status, exit status, pid, parent; uid; name and long name; start in s and us."""
_TASK_INFO = "<QQQQ64x"
"""struct proc_taskinfo: virtual and resident size, user and system time in mach ticks."""
_ZOMBIE = 5
_LOOK_S = 0.002
_MOST_ABOVE = 4096
_PATH_BYTES = 1024


class ProcessFacts(NamedTuple):
    """One process as libproc has it; `started` in microseconds since 1970."""

    parent: int
    uid: int
    name: str
    started: int
    is_zombie: bool
    memory_bytes: int
    cpu_seconds: float


def peer_ids(link: socket) -> tuple[int, int]:
    """The process id and user id of the peer, as the kernel reports them (LOCAL_PEERPID, LOCAL_PEERCRED)."""
    raw = link.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, struct.calcsize(_CREDENTIALS))
    pid = struct.unpack("i", link.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))[0]
    return pid, struct.unpack(_CREDENTIALS, raw)[1]


def comes_from_below(link: socket, root: int) -> bool:
    """True when the process that connected is a descendant of `root`, or has ended and cannot be checked.

    macOS has neither subreapers nor control groups: an orphan of a command is init's child and not recognised here. It is
    held off by the owner's key, which the sandbox does not let it read.
    """
    pid, _ = peer_ids(link)
    for _ in range(_MOST_ABOVE):
        found = process(pid)
        if found is None:
            return True
        if found.parent == root:
            return True
        if found.parent <= 1:
            return False
        pid = found.parent
    return True


def descriptor_path(fd: int) -> str:
    """The real path of an open file or folder. Raises OSError where the kernel does not tell."""
    return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(_PATH_BYTES)).rstrip(b"\0"))  # type: ignore[attr-defined]


cwd_of = descriptor_path
"""The path of an open folder for a child to start in."""


def sync(fd: int) -> None:
    """Make a file durable: fsync of macOS leaves it in the drive's cache. File systems without F_FULLFSYNC get fsync."""
    try:
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined]
    except OSError:
        os.fsync(fd)


sync_data = sync


def attributes(fd: int, *, with_access_list: bool = False, without: str = "\0") -> dict[str, bytes]:
    """The extended attributes of a file; empty where the file system has none. Access lists are not among them on macOS."""
    names = _filled(lambda buffer, size: int(_library().flistxattr(fd, buffer, size, 0))).split(b"\0")
    return {os.fsdecode(name): _attribute(fd, name) for name in names if name and not name.startswith(without.encode())}


def _attribute(fd: int, name: bytes) -> bytes:
    return _filled(lambda buffer, size: int(_library().fgetxattr(fd, name, buffer, size, 0, 0)))


def set_attribute(fd: int, name: str, value: bytes) -> None:
    """Set an extended attribute. A file system without attributes keeps none."""
    _library().fsetxattr(fd, os.fsencode(name), value, len(value), 0, 0)


def remove_attribute(fd: int, name: str) -> None:
    """Remove an extended attribute, if the file has it."""
    _library().fremovexattr(fd, os.fsencode(name), 0)


def copy_range(source: int, target: int, at: int, count: int) -> int:
    """Not offered: macOS copies whole files by reference only."""
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def link_descriptor(descriptor: int, folder: int, name: str) -> None:
    """Link an open file as `name` in `folder`; never replaces. Raises OSError when its path leads to another file by then."""
    os.link(descriptor_path(descriptor), name, dst_dir_fd=folder, follow_symlinks=False)
    made, ours = os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(descriptor)
    if (made.st_dev, made.st_ino) != (ours.st_dev, ours.st_ino):
        os.unlink(name, dir_fd=folder)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def boot_id() -> str:
    """What differs after each start of the system (kern.bootsessionuuid); empty where that is not known."""
    import ctypes

    buffer, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
    failed = _library().sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, ctypes.c_size_t(0))
    return "" if failed else buffer.value.decode("ascii", "replace")


def wait_unreaped(pid: int) -> None:
    """Wait until a child has ended, leaving its id reserved until it is reaped. Python has no waitid here before 3.13."""
    while (found := process(pid)) is not None and not found.is_zombie:
        time.sleep(_LOOK_S)


def process_name(pid: int | None) -> str:
    """The name of a process; empty when it has ended."""
    from computer_linker.model.geometry import safe_title

    found = None if pid is None else process(pid)
    return "" if found is None else safe_title(found.name)


def started_at(pid: int) -> int | None:
    """The start time in microseconds; None when the process has ended. With the pid it identifies one process."""
    found = process(pid)
    return None if found is None else found.started


def is_running(pid: int, started: int) -> bool:
    """Whether this process runs: neither ended, nor a zombie, nor another one with its pid."""
    found = process(pid)
    return found is not None and found.started == started and not found.is_zombie


def all_pids() -> list[int]:
    """The ids of all processes, in order."""
    import ctypes

    library = _library()
    most = library.proc_listallpids(None, 0) + _NEW_PIDS
    buffer = (ctypes.c_int * most)()
    return sorted(buffer[: library.proc_listallpids(buffer, ctypes.sizeof(buffer))])


def process(pid: int) -> ProcessFacts | None:
    """What libproc has of a process; memory and processor time are 0 for another user's. None when it has ended."""
    import ctypes

    size = struct.calcsize(_BSD_INFO) + struct.calcsize(_TASK_INFO)
    buffer = ctypes.create_string_buffer(size)
    found = _library().proc_pidinfo(pid, _PIDTASKALLINFO, ctypes.c_uint64(0), buffer, size)
    if found != size and _library().proc_pidinfo(
        pid, _PIDTBSDINFO, ctypes.c_uint64(0), buffer, struct.calcsize(_BSD_INFO)
    ) != struct.calcsize(_BSD_INFO):
        return None
    _, status, _, _, parent, uid, name, long_name, seconds, micros = struct.unpack_from(_BSD_INFO, buffer)
    _, resident, user, kernel = struct.unpack_from(_TASK_INFO, buffer, struct.calcsize(_BSD_INFO))
    shown = (long_name.partition(b"\0")[0] or name.partition(b"\0")[0]).decode("utf-8", "replace")
    started = seconds * 1_000_000 + micros
    return ProcessFacts(parent, uid, shown, started, status == _ZOMBIE, resident, (user + kernel) * _tick_s())


def _tick_s() -> float:
    """Seconds in a mach tick: 1 ns on Intel, 41.7 ns on Apple silicon."""
    import ctypes

    ratio = (ctypes.c_uint32 * 2)()
    _library().mach_timebase_info(ratio)
    return ratio[0] / ratio[1] / 1e9


def _filled(call: "Callable[[object, int], int]") -> bytes:
    """What a call writes into a buffer of the size that it asks for; empty where it fails."""
    import ctypes

    size = call(None, 0)
    if size <= 0:
        return b""
    buffer = ctypes.create_string_buffer(size)
    return buffer.raw[: max(0, call(buffer, size))]


def _library() -> "ctypes.CDLL":
    """libSystem, which has libproc and the C library."""
    import ctypes

    return ctypes.CDLL("/usr/lib/libSystem.B.dylib")
