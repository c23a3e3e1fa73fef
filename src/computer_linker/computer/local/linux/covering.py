"""Closes names again in the sandbox of a running program.

A file that is replaced on the disk loses the mount that covered it, in every mount namespace. A child of the launcher enters
the namespaces of the sandbox and covers the new file as the old one was. Imports little, like all of the launcher.
"""

import ctypes
import os

from computer_linker.computer.local.linux.mount_calls import (
    AT_FDCWD,
    CLONE_NEWNS,
    CLONE_NEWUSER,
    clone,
    cover,
    libc,
    open_path,
    read_only,
)
from computer_linker.system.proc_files import SIGKILL, descendants

_PR_SET_PDEATHSIG = 1
_COVERS = (b"/file", b"/folder")
"""In the namespace that the root was staged in (see staging.py)."""
_MOST = 64
"""Mount namespaces of one program in which a name is closed again; one that makes more has it open in some."""
Spaces = tuple[int, int]
"""A user and a mount namespace, by descriptors."""
CLOSED, OPEN, COVERED, GONE = range(4)
"""The exit status: closed now, open still, covered already, not there any more or another file."""


def cover_again(pid: int, path: bytes, *, is_hidden: bool, device: int, inode: int) -> None:
    """In a child of the launcher: close a name in all sandboxes of the program `pid`. Exits with a status."""
    status = OPEN
    try:
        libc.prctl(_PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        spaces = _spaces_below(pid)
        # Each in a process of its own: from one user namespace there is no way to another beside it.
        made = [_forked(_spaces_of(pid), space, path, is_hidden, (device, inode)) for space in spaces]
        ended = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in made]
        ended += [OPEN] if len(spaces) == _MOST else []
        status = next((each for each in (OPEN, GONE, CLOSED, COVERED) if each in ended), OPEN)
    finally:
        os._exit(status)


def _forked(outer: Spaces, inner: Spaces, path: bytes, is_hidden: bool, identity: tuple[int, int]) -> int:
    child = os.fork()
    if child:
        return child
    status = OPEN
    try:
        libc.prctl(_PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        status = _covered(outer, inner, path, is_hidden, identity)
    finally:
        os._exit(status)


def _covered(outer: Spaces, inner: Spaces, path: bytes, is_hidden: bool, identity: tuple[int, int]) -> int:
    """Cover the name in the inner namespaces; the covers are those that were staged in the outer ones."""
    _enter(outer)
    trees = [clone(open_path(AT_FDCWD, each)) for each in _COVERS] if is_hidden else []
    _enter(inner)
    try:
        point = open_path(AT_FDCWD, path)
    except OSError:
        return GONE
    found = os.fstat(point)
    if (found.st_dev, found.st_ino) != identity:
        return GONE if found.st_dev == identity[0] else COVERED
    is_folder = found.st_mode & 0o170000 == 0o040000
    cover(point, trees[is_folder] if is_hidden else read_only(clone(point)))
    return CLOSED


def _spaces_below(pid: int) -> "list[Spaces]":
    """The namespaces of the processes below `pid`, one of each mount namespace other than its own and ours."""
    known = {os.stat(f"/proc/{each}/ns/mnt").st_ino for each in (pid, "self")}  # noqa: PTH116  # pathlib is slow to import
    found: list[Spaces] = []
    for inner in descendants(pid):
        try:
            spaces = _spaces_of(inner)
        except OSError:
            continue
        # By what is held open: the number of an ended process may be another's by now.
        number = os.fstat(spaces[1]).st_ino
        if number in known or len(found) == _MOST:
            for fd in spaces:
                os.close(fd)
        else:
            known.add(number)
            found.append(spaces)
    return found


def _spaces_of(pid: int) -> "Spaces":
    return (
        os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC),
        os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC),
    )


def _enter(spaces: "Spaces") -> None:
    """Enter a user and a mount namespace. The superuser has the right to the second without the first."""
    users, mounts = spaces
    if os.geteuid() != 0:
        _call(libc.setns(users, CLONE_NEWUSER))
    _call(libc.setns(mounts, CLONE_NEWNS))


def _call(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "setns")
