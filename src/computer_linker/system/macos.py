"""Peers of sockets, processes by id and paths of descriptors, on macOS. Run on a stand-in only (`make test-macos-shim`)."""

import fcntl
import os
import struct
from _socket import socket
from typing import NamedTuple

_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID = 0, 0x001, 0x002
"""From sys/un.h; the standard library defines none of them."""
_CREDENTIALS = "IIh2x16I"
"""struct xucred: version, uid, count of groups, groups."""
_PIDTBSDINFO = 3
_BSD_INFO = "<5I24x4x16s32s24xQQ"
"""struct proc_bsdinfo (sys/proc_info.h): flags, status, exit status, pid, parent; name and long name; start in s and us."""
_ZOMBIE = 5
_MOST_ABOVE = 4096
_PATH_BYTES = 1024


class _Process(NamedTuple):
    parent: int
    name: str
    started: int
    is_zombie: bool


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
        found = _process(pid)
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


def sync(fd: int) -> None:
    """Make a file durable: fsync of macOS leaves it in the drive's cache. File systems without F_FULLFSYNC get fsync."""
    try:
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined]
    except OSError:
        os.fsync(fd)


sync_data = sync


def process_name(pid: int | None) -> str:
    """The name of a process; empty when it has ended."""
    from computer_linker.model.geometry import safe_title

    found = None if pid is None else _process(pid)
    return "" if found is None else safe_title(found.name)


def started_at(pid: int) -> int | None:
    """The start time in microseconds; None when the process has ended. With the pid it identifies one process."""
    found = _process(pid)
    return None if found is None else found.started


def is_running(pid: int, started: int) -> bool:
    """Whether this process runs: neither ended, nor a zombie, nor another one with its pid."""
    found = _process(pid)
    return found is not None and found.started == started and not found.is_zombie


def _process(pid: int) -> _Process | None:
    import ctypes

    size = struct.calcsize(_BSD_INFO)
    buffer = ctypes.create_string_buffer(size)
    if ctypes.CDLL("/usr/lib/libproc.dylib").proc_pidinfo(pid, _PIDTBSDINFO, ctypes.c_uint64(0), buffer, size) != size:
        return None
    _flags, status, _exit, _pid, parent, name, long_name, seconds, micros = struct.unpack(_BSD_INFO, buffer.raw)
    shown = (long_name.partition(b"\0")[0] or name.partition(b"\0")[0]).decode("utf-8", "replace")
    return _Process(parent, shown, seconds * 1_000_000 + micros, status == _ZOMBIE)
