"""Enters user namespaces with more than one id, in the launcher's child. Imports little.

A process cannot map more than its own id into a namespace that it has created; one in the namespace above can. So a helper of
the launcher creates the outer namespace, in which roots are staged, and maps the inner ones, in which programs run, each in its
own. The outer one has an id that the inner ones have not: what belongs to it (the covers of hidden names) is beyond the
programs' capabilities. Forking a helper for each command took a sixth of its processor time.
"""

import _socket
import ctypes
import errno
import os
import sys

from computer_linker.computer.local.linux.mount_calls import CLONE_NEWNS, CLONE_NEWUSER, Unstaged, libc
from computer_linker.system.proc_files import SIGKILL, write

BEYOND = 65_536
"""The id of the outer namespace that the inner one has not."""
_CREATED, _MAPPED = b"created", b"mapped"
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_HELPER_NAME = b"linker-id-maps"
"""As `ps` shows it."""


class IdMaps:
    """The outer namespace, which all children of a launcher share, and the helper in it that maps the inner ones."""

    def __init__(self, outer: int, link: _socket.socket) -> None:
        self.outer = outer
        """The namespace, by descriptor."""
        self.link = link

    def enter_outer(self) -> None:
        """Enter the outer user namespace, and a new mount namespace."""
        if libc.setns(self.outer, CLONE_NEWUSER) != 0 or libc.unshare(CLONE_NEWNS) != 0:
            raise Unstaged(ctypes.get_errno(), "user namespace")

    def enter_inner(self) -> None:
        """Enter the program's user namespace."""
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        if libc.unshare(CLONE_NEWUSER) != 0:
            raise Unstaged(ctypes.get_errno(), "user namespace")
        rights = theirs.fileno().to_bytes(4, sys.byteorder)
        self.link.sendmsg([b"%d" % os.getpid()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        theirs.close()
        if ours.recv(16) != _MAPPED:
            raise Unstaged(errno.EPERM, "user namespace")


class IdMapper:
    """The launcher's side: the helper, started when a child first needs it, and again if it ended."""

    def __init__(self, first: int) -> None:
        """Map the superuser, 65,535 ids of the host from `first` on, and BEYOND into the outer namespace."""
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            _help(theirs)
        theirs.close()
        if ours.recv(16) != _CREATED:
            raise OSError(errno.EPERM, "user namespace")
        _write(self.pid, b"0 0 1\n1 %d %d\n%d %d 1\n" % (first + 1, BEYOND - 1, BEYOND, first))
        self.maps = IdMaps(os.open(b"/proc/%d/ns/user" % self.pid, os.O_RDONLY | os.O_CLOEXEC), ours)

    def close(self) -> None:
        """End the helper by closing its link."""
        os.close(self.maps.outer)
        self.maps.link.close()


class CloneArguments(ctypes.Structure):
    """`struct clone_args` of its first version (clone3(2))."""

    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls")
    )


def _help(link: _socket.socket) -> None:
    """In the helper: create the outer namespace, and write the maps of inner ones. Never returns."""
    try:
        libc.prctl(_PR_SET_NAME, _HELPER_NAME, 0, 0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        # Where permitted: the OOM killer ends a command first.
        write("/proc/self/oom_score_adj", "-1000")
        os.closerange(3, link.fileno())
        os.closerange(link.fileno() + 1, 65_536)
        if libc.unshare(CLONE_NEWUSER) != 0:
            return
        link.send(_CREATED)
        while True:
            pid, ancillary, _, _ = link.recvmsg(16, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
            if not pid:
                return
            _map(int(pid), _socket.socket(fileno=int.from_bytes(ancillary[0][2][:4], sys.byteorder)))
    finally:
        os._exit(0)


def _map(pid: int, answer: _socket.socket) -> None:
    """Write the maps of a child's inner namespace. One that has ended meanwhile waits for no answer."""
    try:
        # In two parts, since each has to lie within one part of the outer map.
        _write(pid, b"0 0 1\n1 1 %d\n" % (BEYOND - 1))
        answer.send(_MAPPED)
    except OSError:
        return
    finally:
        answer.close()


def _write(pid: int, ids: bytes) -> None:
    for name in (b"uid_map", b"gid_map"):
        fd = os.open(b"/proc/%d/%s" % (pid, name), os.O_WRONLY | os.O_CLOEXEC)
        os.write(fd, ids)
        os.close(fd)
