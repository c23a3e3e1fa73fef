"""Peers of sockets, processes by id and paths of descriptors, on Linux."""

import errno
import os
import struct
from _socket import SO_PEERCRED, SOL_SOCKET, socket

from computer_linker.system.proc_files import origin_of, read, stat_fields
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

__all__ = [
    "KEPT_VARIABLES", "Detached", "Output", "attributes", "boot_id", "channel", "comes_from_below", "copy_range", "cwd_of",
    "descriptor_path", "end_group", "is_elevated", "is_program_name", "is_running", "link_descriptor", "lock",
    "make_private_folders", "peer_ids", "process_name", "program_names", "refused_name", "relay", "remove_attribute",
    "rename_new", "set_attribute", "slashed", "started_at", "sync", "sync_data", "try_lock", "unlock",
    "wait_unreaped", "write_all",
]  # fmt: skip

_CREDENTIALS = "iII"
_ACCESS_LIST = "system.posix_acl_access"
sync, sync_data = os.fsync, os.fdatasync
"""Make a file durable; without its times, where the system can."""


def peer_ids(link: socket) -> tuple[int, int]:
    """The process id and user id of the peer, as the kernel reports them (SO_PEERCRED)."""
    raw = link.getsockopt(SOL_SOCKET, SO_PEERCRED, struct.calcsize(_CREDENTIALS))
    pid, uid, _gid = struct.unpack(_CREDENTIALS, raw)
    return pid, uid


def comes_from_below(link: socket, root: int) -> bool:
    """True when the process that connected is a descendant of `root`, or has ended and cannot be checked."""
    from computer_linker.system import lineage

    return lineage.comes_from_below(link, root)


def descriptor_path(fd: int) -> str:
    """The real path of an open file or folder. Raises OSError where the kernel does not tell."""
    return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115  # every command waits for this


def cwd_of(fd: int) -> str:
    """A path of an open folder that a child resolves through its inherited descriptor, not through the tree."""
    return f"/proc/self/fd/{fd}" if os.path.exists("/proc/self/fd") else descriptor_path(fd)  # noqa: PTH110


def attributes(fd: int, *, with_access_list: bool = False, without: str = "\0") -> dict[str, bytes]:
    """The extended attributes of a file that programs set, `without` those that begin so; empty where it can have none."""
    try:
        names = os.listxattr(fd)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return {}
    if not names:
        return {}
    kept = (name for name in names if name.startswith("user.") or (with_access_list and name == _ACCESS_LIST))
    return {name: os.getxattr(fd, name) for name in kept if not name.startswith(without)}


def set_attribute(fd: int, name: str, value: bytes) -> None:
    """Set an extended attribute. A file system without attributes keeps none."""
    try:
        os.setxattr(fd, name, value)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise


remove_attribute = os.removexattr


def copy_range(source: int, target: int, at: int, count: int) -> int:
    """Copy bytes at the same place, by reference where the disk can; returns how many. Raises OSError where it cannot."""
    return os.copy_file_range(source, target, count, at, at)


def link_descriptor(descriptor: int, folder: int, name: str) -> None:
    """Link an open file (also an O_TMPFILE) as `name` in `folder`; never replaces."""
    # linkat follows the magic link to the open file itself, so no name is looked up a second time.
    os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder, follow_symlinks=True)


def boot_id() -> str:
    """What differs after each start of the system; empty where that is not known."""
    try:
        return read("/proc/sys/kernel/random/boot_id").decode("ascii").strip()
    except OSError:
        return ""


def wait_unreaped(pid: int) -> None:
    """Wait until a child has ended, leaving its id reserved until it is reaped."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def process_name(pid: int | None) -> str:
    """The name of a process's executable where it may be read; empty when the process has ended."""
    from computer_linker.model.geometry import safe_title

    if pid is None:
        return ""
    try:
        return safe_title(os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)"))  # noqa: PTH115, PTH119
    except OSError:
        return safe_title(read(f"/proc/{pid}/comm").decode(errors="replace").strip())


def started_at(pid: int) -> int | None:
    """The start time in ticks since boot; None when the process has ended. With the pid it identifies one process."""
    origin = origin_of(pid)
    return None if origin is None else origin[1]


def is_running(pid: int, started: int) -> bool:
    """Whether this process runs: neither ended, nor a zombie, nor another one with its pid."""
    fields = stat_fields(pid)
    return len(fields) > 19 and int(fields[19]) == started and fields[0] not in (b"Z", b"X")
