"""Whether a process is a descendant of this service. Such a process is never the owner.

The launcher is a child subreaper, so a command's orphans stay below it, and a process that is below it stays so for life. The
control group shows the same where there is one, also for a process whose launcher was killed.
"""

import errno
import os
import re
import select
import struct
from _socket import SOL_SOCKET, socket

from computer_linker.system.linux import peer_ids
from computer_linker.system.proc_files import origin_of, read

_PEER_PIDFD = 77
"""SO_PEERPIDFD (Linux 6.5), which the standard library does not define."""
_TRIES = 5
_MOST_ABOVE = 4096
_COMMANDS = re.compile(rb"/computer-linker-\d[\d-]*(?:/|$)", re.MULTILINE)
"""A control group of commands, of this service or another one of this user (see control_groups.py)."""
IS_KNOWN = bool(read("/proc/self/stat"))
"""Whether /proc shows the parents of processes."""


def comes_from_below(link: socket, root: int) -> bool:
    """True when the process that connected is a descendant of `root`, or has ended and cannot be checked."""
    if not IS_KNOWN:
        return False
    pid, _ = peer_ids(link)
    if pid == 0:
        # The peer is in a pid namespace outside ours, and descendants are always inside.
        return False
    try:
        pidfd = _peer_pidfd(link, pid)
    except OSError:
        return True
    try:
        found = is_below(pid, root)
        # Still running, so the pid was not reused meanwhile.
        return found is not False or bool(select.select([pidfd], [], [], 0)[0])
    finally:
        os.close(pidfd)


def is_below(pid: int, root: int) -> bool | None:
    """Whether a process is a descendant of `root` (not `root` itself); None when processes ended before it was decided."""
    if _COMMANDS.search(read(f"/proc/{pid}/cgroup")) and not _COMMANDS.search(read(f"/proc/{root}/cgroup")):
        return pid != root
    for _ in range(_TRIES):
        found = _walk(pid, root)
        if found is not None:
            return found
    return None


def _walk(pid: int, root: int) -> bool | None:
    here = origin_of(pid)
    for _ in range(_MOST_ABOVE):
        if here is None:
            return None
        parent, _ = here
        if parent == root and pid != root:
            return True
        if parent == 0 or pid == root:
            return False
        above = origin_of(parent)
        is_hidden = above is None and _is_another_users(parent)
        # The same parent before and after: so the pid read was the parent's and was not reused.
        if origin_of(pid) != here:
            return None
        if is_hidden:
            return False
        pid, here = parent, above
    return None


def _is_another_users(pid: int) -> bool:
    """True for a living process of another user, which /proc may hide (hidepid). No descendant of ours can change user."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return False


def _peer_pidfd(link: socket, pid: int) -> int:
    try:
        raw = link.getsockopt(SOL_SOCKET, _PEER_PIDFD, 4)
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            raise
        # An older kernel: the pid may have been reused. The proof by the key does not depend on it.
        return os.pidfd_open(pid)
    return int(struct.unpack("i", raw)[0])
