"""Peers, processes by id and paths of descriptors, on Windows. Run under wine only (`make test-windows`)."""

import errno
import os
import time
from typing import TYPE_CHECKING

from computer_linker.system.windows import calls, channel, nt
from computer_linker.system.windows.calls import rename_new
from computer_linker.system.windows.channel import peer_ids
from computer_linker.system.windows.locks import lock, try_lock, unlock
from computer_linker.system.windows.names import KEPT_VARIABLES, is_program_name, program_names, refused_name, slashed
from computer_linker.system.windows.processes import (
    boot_id,
    end_group,
    is_below,
    is_in_a_command,
    is_running,
    process_name,
    started_at,
)
from computer_linker.system.windows.security import is_elevated, make_private_folders
from computer_linker.system.windows.start import Detached, Output, relay, write_all

if TYPE_CHECKING:
    from _socket import socket

__all__ = [
    "KEPT_VARIABLES", "Detached", "Output", "attributes", "boot_id", "calls", "channel", "comes_from_below", "copy_range",
    "cwd_of", "descriptor_path", "end_group", "is_elevated", "is_program_name", "is_running", "link_descriptor", "lock",
    "make_private_folders", "peer_ids", "process_name", "program_names", "refused_name", "relay", "remove_attribute",
    "rename_new", "set_attribute", "slashed", "started_at", "sync", "sync_data", "try_lock", "unlock",
    "wait_unreaped", "write_all",
]  # fmt: skip
_LOOK_S = 0.002


def comes_from_below(link: "socket", root: int) -> bool:
    """True when the process that connected is a descendant of `root`, or has ended and cannot be checked.

    Windows keeps no ancestry of a process whose parent has ended, so a command's processes are also known by its job.
    """
    pid, _ = peer_ids(link)  # type: ignore[arg-type]
    return is_in_a_command(pid) or is_below(pid, root)


def descriptor_path(fd: int) -> str:
    """The real path of an open file or folder, with slashes. Raises OSError where the system does not tell."""
    return nt.final_path(nt.handle_of(fd))


cwd_of = descriptor_path
"""The path of an open folder for a child to start in."""


def sync(fd: int) -> None:
    """Make a file durable. Windows has no such call for a folder: its journal keeps renames whole."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EACCES):
            raise


sync_data = sync


def attributes(fd: int, *, with_access_list: bool = False, without: str = "\0") -> dict[str, bytes]:
    """None: Windows keeps such things in streams, which are not read here."""
    return {}


def set_attribute(fd: int, name: str, value: bytes) -> None:
    """Nothing: there are none."""


def remove_attribute(fd: int, name: str) -> None:
    """Nothing: there are none."""


def copy_range(source: int, target: int, at: int, count: int) -> int:
    """Not offered."""
    raise nt.failure(errno.EOPNOTSUPP)


def link_descriptor(descriptor: int, folder: int, name: str) -> None:
    """Link an open file as `name` in `folder`; never replaces."""
    with nt.with_write_attributes(nt.handle_of(descriptor)) as handle:
        calls.link_handle(handle, folder, name)


def wait_unreaped(pid: int) -> None:
    """Wait until a process has ended."""
    while started_at(pid) is not None:
        time.sleep(_LOOK_S)
