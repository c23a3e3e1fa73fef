"""Enters user namespaces with more than one id, in the launcher's child. Imports little.

A process cannot map more than its own id into a namespace that it has created; one in the namespace above can. So a helper
creates the outer namespace, in which the root is staged, and maps the inner one, in which the program runs. The outer one has an
id that the inner one has not: what belongs to it (the covers of hidden names) is beyond the program's capabilities.
"""

import _socket
import ctypes
import errno
import os

from computer_linker.computer.local.linux.mount_calls import CLONE_NEWNS, CLONE_NEWUSER, Unstaged, libc

BEYOND = 65_536
"""The id of the outer namespace that the inner one has not."""
_CLONE3, _CLONE_PARENT = 435, 0x8000


class IdMaps:
    """The helper of one child, started before its order arrives. It ends with it, and the launcher reaps it."""

    def __init__(self) -> None:
        self._link, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        mapped = os.getpid()
        how = CloneArguments(flags=_CLONE_PARENT)
        self._helper: int = libc.syscall(_CLONE3, ctypes.byref(how), ctypes.sizeof(how))
        if self._helper == 0:
            _help(theirs.fileno(), mapped)
        theirs.close()

    def enter_outer(self, first: int) -> None:
        """Enter a user and mount namespace with the superuser, 65,535 ids of the host from `first` on, and BEYOND."""
        self._expect(b"created")
        try:
            _write(self._helper, b"0 0 1\n1 %d %d\n%d %d 1\n" % (first + 1, BEYOND - 1, BEYOND, first))
            outer = os.open(b"/proc/%d/ns/user" % self._helper, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unstaged(error.errno or 0, "user namespace") from error
        if libc.setns(outer, CLONE_NEWUSER) != 0 or libc.unshare(CLONE_NEWNS) != 0:
            raise Unstaged(ctypes.get_errno(), "user namespace")

    def enter_inner(self) -> None:
        """Enter the program's user namespace."""
        if libc.unshare(CLONE_NEWUSER) != 0:
            raise Unstaged(ctypes.get_errno(), "user namespace")
        self._link.send(b"map")
        self._expect(b"mapped")

    def _expect(self, message: bytes) -> None:
        if self._link.recv(16) != message:
            raise Unstaged(errno.EPERM, "user namespace")


class CloneArguments(ctypes.Structure):
    """`struct clone_args` of its first version (clone3(2))."""

    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls")
    )


def _help(fd: int, pid: int) -> None:
    """In the helper: create the outer namespace, and write the maps of the inner one. Never returns."""
    try:
        os.closerange(3, fd)
        os.closerange(fd + 1, 65_536)
        link = _socket.socket(fileno=fd)
        if libc.unshare(CLONE_NEWUSER) != 0:
            return
        link.send(b"created")
        if link.recv(16) == b"map":
            # In two parts, since each has to lie within one part of the outer map.
            _write(pid, b"0 0 1\n1 1 %d\n" % (BEYOND - 1))
            link.send(b"mapped")
    finally:
        os._exit(0)


def _write(pid: int, ids: bytes) -> None:
    for name in (b"uid_map", b"gid_map"):
        fd = os.open(b"/proc/%d/%s" % (pid, name), os.O_WRONLY | os.O_CLOEXEC)
        os.write(fd, ids)
        os.close(fd)
