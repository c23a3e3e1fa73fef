"""The kernel's mount calls that take descriptors (Linux 5.12), by number: the C library has no wrappers for them.

Used in the launcher's child, so it imports little.
"""

import ctypes
import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
_syscall = libc.syscall
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 430, 431, 432, 437, 442
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
AT_FDCWD, _AT_EMPTY_PATH, _AT_SYMLINK_NOFOLLOW, _AT_RECURSIVE = -100, 0x1000, 0x100, 0x8000
_CLONED = 1 | os.O_CLOEXEC | _AT_RECURSIVE
_BY_DESCRIPTORS = 0x04 | 0x40
RDONLY, NOSUID, NODEV, NOEXEC, NOSYMFOLLOW = 1, 2, 4, 8, 0x200000
_SIZE_24, _SIZE_32 = ctypes.c_size_t(24), ctypes.c_size_t(32)
_NO_LINKS, _BENEATH = 0x02 | 0x04, 0x08
_MAX_PATH = 4000
_STATX = 332 if os.uname().machine == "x86_64" else 291
_MOUNT_ID, _IS_MOUNT_ROOT = 0x1000 | 0x4000, 0x2000
_about = ctypes.create_string_buffer(256)
_MNT_DETACH = 2


class Unstaged(OSError):
    """The root could not be built; `step` names the refused call, or is `changed` when a name changed since inspection."""

    def __init__(self, number: int, step: str) -> None:
        super().__init__(number, step)
        self.step = step


def own_namespaces() -> None:
    """Enter a new user and mount namespace that maps only this process's user and group."""
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        raise Unstaged(ctypes.get_errno(), "user namespace")
    try:
        for name, text in (
            ("setgroups", b"deny"),
            ("uid_map", b"%d %d 1" % (uid, uid)),
            ("gid_map", b"%d %d 1" % (gid, gid)),
        ):
            fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
            os.write(fd, text)
            os.close(fd)
    except OSError as error:
        raise Unstaged(error.errno or 0, "user namespace") from error


def filesystem(kind: bytes, *options: "tuple[bytes, bytes | None]", attributes: int = NOSUID | NODEV) -> int:
    """A new detached file system; an option without a value is a flag."""
    context = _call(_FSOPEN, kind, 1)
    try:
        for key, value in options:
            _call(_FSCONFIG, context, 0 if value is None else 1, key, value, 0)
        _call(_FSCONFIG, context, 6, None, None, 0)
        return _call(_FSMOUNT, context, 1, attributes)
    finally:
        os.close(context)


def _how(resolve: int) -> bytes:
    return (
        (os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC).to_bytes(8, sys.byteorder)
        + bytes(8)
        + resolve.to_bytes(8, sys.byteorder)
    )


_FROM_ROOT, _BELOW = _how(_NO_LINKS), _how(_NO_LINKS | _BENEATH)


def open_path(folder: int, path: bytes) -> int:
    """Open `path` (O_PATH) without following links; below `folder` if it is a descriptor."""
    if len(path) > _MAX_PATH:
        return _open_long(folder, path)
    fd: int = _syscall(_OPENAT2, folder, path, _FROM_ROOT if folder == AT_FDCWD else _BELOW, _SIZE_24)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "open")
    return fd


def _open_long(folder: int, path: bytes) -> int:
    """Open a long path in several steps: folders can be nested deeper than PATH_MAX."""
    cut = path.rfind(b"/", 1, _MAX_PATH)
    above = open_path(folder, path[:cut])
    try:
        return open_path(above, path[cut + 1 :])
    finally:
        os.close(above)


def clone(fd: int) -> int:
    """A detached recursive clone of the mount at a descriptor."""
    return _call(_OPEN_TREE, fd, b"", _CLONED | _AT_EMPTY_PATH)


def clone_at(path: bytes) -> int:
    """A detached clone of the mount at a system path."""
    return _call(_OPEN_TREE, AT_FDCWD, path, _CLONED | _AT_SYMLINK_NOFOLLOW)


def read_only(tree: int) -> int:
    set_attributes(tree, RDONLY)
    return tree


def set_attributes(tree: int, attributes: int) -> None:
    """Set attributes of a mount and of all below it."""
    _set(tree, attributes, _AT_EMPTY_PATH | _AT_RECURSIVE)


def set_own_attributes(tree: int, attributes: int) -> None:
    """Set attributes of a mount, not of those below it."""
    _set(tree, attributes, _AT_EMPTY_PATH)


def _set(tree: int, attributes: int, flags: int) -> None:
    wanted = attributes.to_bytes(8, sys.byteorder) + bytes(24)
    _call(_MOUNT_SETATTR, tree, b"", flags, wanted, _SIZE_32)


def mount_at(fd: int) -> int:
    """The mount that an entry lies on, odd where the entry is that mount's root; before Linux 6.8 ids are used again."""
    if _syscall(_STATX, fd, b"", _AT_EMPTY_PATH, _MOUNT_ID, _about) != 0:
        raise OSError(ctypes.get_errno(), "statx")
    about = _about.raw
    is_root = int.from_bytes(about[8:16], sys.byteorder) & _IS_MOUNT_ROOT
    return int.from_bytes(about[144:152], sys.byteorder) << 1 | bool(is_root)


def cover(point: int, tree: int) -> None:
    """Mount a tree, and close both descriptors: there may be more names than the descriptor limit allows."""
    move(tree, point)
    os.close(tree)
    os.close(point)


def move(tree: int, onto: int) -> None:
    _call(_MOVE_MOUNT, tree, b"", onto, b"", _BY_DESCRIPTORS)


def _call(number: int, *arguments: "Any") -> int:
    result: int = _syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        if code == errno.ENOENT:
            raise FileNotFoundError(code, "mount")
        raise Unstaged(code, "mount")
    return result


def detach(path: bytes) -> None:
    """Take a mount and all below it out of this namespace. Waits for a grace period of the kernel."""
    if libc.umount2(path, _MNT_DETACH) != 0:
        raise Unstaged(ctypes.get_errno(), "mount")


def change_root(folder: int, old: bytes) -> None:
    """Make a folder this process's root; the old one is at `old` in it afterwards."""
    os.fchdir(folder)
    if libc.pivot_root(b".", old) != 0:
        raise Unstaged(ctypes.get_errno(), "mount")
    os.chdir(b"/")
