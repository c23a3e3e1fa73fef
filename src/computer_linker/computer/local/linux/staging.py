"""The root of a sandboxed program, built in the launcher's child from descriptors the service holds.

It is built in a user and mount namespace of the child's own, with the mount calls that take descriptors (Linux 5.12), so that
no path below a folder a command can write is ever resolved twice. bubblewrap then binds the finished root as a whole: it
resolves nothing but /proc and /dev, and its own user namespace locks the mounts that close names.

The kernel clones no mount of another namespace, so a held folder is opened again by its path, without following links, and
must be the same folder. Imports next to nothing, as everything of the launcher does.
"""

import ctypes
import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 430, 431, 432, 437, 442
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_AT_FDCWD, _AT_EMPTY_PATH, _AT_SYMLINK_NOFOLLOW, _AT_RECURSIVE = -100, 0x1000, 0x100, 0x8000
_CLONED = 1 | os.O_CLOEXEC | _AT_RECURSIVE
_BY_DESCRIPTORS = 0x04 | 0x40
_RDONLY, _NOSUID_NODEV = 1, 2 | 4
_SIZE_24, _SIZE_32 = ctypes.c_size_t(24), ctypes.c_size_t(32)
_NO_LINKS = 0x02 | 0x04
_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Unstaged(OSError):
    """The root could not be built; `step` names what the kernel refused, or `changed` when a name is not what was seen."""

    def __init__(self, number: int, step: str) -> None:
        super().__init__(number, step)
        self.step = step


def stage(order: "dict[str, Any]", held: list[int]) -> int:
    """Build the root that `order` describes from the `held` descriptors; a descriptor of it, which has a path for bubblewrap."""
    paths = [os.readlink(f"/proc/self/fd/{fd}") for fd in held]  # noqa: PTH115  # pathlib is slow to import
    _own_namespaces()
    # Before anything is mounted: afterwards a path below the temporary folder leads elsewhere.
    trees = [_tree_of(fd, path) for fd, path in zip(held, paths, strict=True)]
    root = _Root(order["room"])
    for kind, at, *rest in order["mounts"]:
        _KINDS[kind](root, at.strip("/"), trees, *rest)
    return root.fd


class _Root:
    """The root in the making: a folder of a small tmpfs, which also holds what closed names are covered with."""

    def __init__(self, size: int) -> None:
        # bubblewrap needs this folder as well. Only its own namespace sees what is mounted on it.
        place = _open(_AT_FDCWD, "/tmp")  # noqa: S108
        base = _tmpfs(size)
        _move(base, place)
        self.device = os.fstat(base).st_dev
        self._base = base
        self._rooms = 0
        self.fd = self.room("root", 0o755)
        self.empty_folder = _read_only(_clone(self.room("folder", 0o555)))
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0, dir_fd=base))
        self.empty_file = _read_only(_clone(_open(base, "file")))
        for name, tree in (("folder", self.empty_folder), ("file", self.empty_file)):
            # What is not mounted anywhere cannot be cloned again.
            _move(tree, _open(base, name))

    def room(self, name: str = "", mode: int = 0o755) -> int:
        """A new folder of the tmpfs."""
        self._rooms += 1
        name = name or f"room-{self._rooms}"
        os.mkdir(name, mode, dir_fd=self._base)
        return _open(self._base, name)

    def is_ours(self, fd: int) -> bool:
        return os.fstat(fd).st_dev == self.device

    def point(self, at: str, *, is_folder: bool = True) -> int:
        """Where to mount; made if it is missing, but never in a folder of the disk."""
        if not at:
            return self.fd
        try:
            return _open(self.fd, at)
        except FileNotFoundError:
            above, _, name = at.rpartition("/")
            parent = self.point(above)
            if not self.is_ours(parent):
                raise
            if is_folder:
                os.mkdir(name, 0o755, dir_fd=parent)
            else:
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o444, dir_fd=parent))
            return _open(parent, name)


def _show_system(root: _Root, at: str, _trees: list[int]) -> None:
    """A folder of the system, read-only, where there is one."""
    try:
        tree = _call(_OPEN_TREE, _AT_FDCWD, b"/" + at.encode(), _CLONED | _AT_SYMLINK_NOFOLLOW)
    except FileNotFoundError:
        return
    _set(tree, _NOSUID_NODEV | _RDONLY)
    _cover(root.point(at), tree)


def _show_held(root: _Root, at: str, trees: list[int], index: int, read_only: bool) -> None:
    """What the service holds, at its path; in a folder of the disk only where it really lies there."""
    tree = trees[index]
    found = os.fstat(tree)
    _set(tree, _NOSUID_NODEV | (_RDONLY if read_only else 0))
    point = root.point(at, is_folder=found.st_mode & 0o170000 == 0o040000)
    if not root.is_ours(point) and not os.path.samestat(found, os.fstat(point)):
        raise Unstaged(errno.ESTALE, "changed")
    if at:
        _cover(point, tree)
    else:
        _move(tree, point)
        root.fd = tree


def _make_room(root: _Root, at: str, _trees: list[int]) -> None:
    """An empty folder in memory, for the program to write to."""
    try:
        point = root.point(at)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
            # A root shows the disk's own entry here: a link, or none.
            return
        raise
    if not root.is_ours(point):
        room = root.room()
        _cover(point, _clone(room))


def _link(root: _Root, at: str, _trees: list[int], target: str) -> None:
    """A link, unless a folder of the disk is shown there, which has its own."""
    above, _, name = at.rpartition("/")
    try:
        parent = root.point(above)
        if root.is_ours(parent):
            os.symlink(target, name, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EEXIST, errno.ELOOP, errno.ENOTDIR):
            raise


def _hold(root: _Root, at: str, _trees: list[int], device: int, inode: int) -> None:
    """Mount a name on itself: it can be neither renamed nor removed."""
    point = _seen(root, at, device, inode)
    if point is not None:
        _cover(point, _clone(point))


def _hold_read_only(root: _Root, at: str, _trees: list[int], device: int, inode: int) -> None:
    point = _seen(root, at, device, inode)
    if point is not None:
        _cover(point, _read_only(_clone(point)))


def _hide(root: _Root, at: str, _trees: list[int], device: int, inode: int) -> None:
    """Mount something empty on a name."""
    point = _seen(root, at, device, inode)
    if point is not None:
        is_folder = os.fstat(point).st_mode & 0o170000 == 0o040000
        _cover(point, _clone(root.empty_folder if is_folder else root.empty_file))


def _seen(root: _Root, at: str, device: int, inode: int) -> int | None:
    """The entry the service saw (any, where it gives no number); None when there is none, or only one of ours."""
    try:
        point = _open(root.fd, at)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unstaged(errno.ESTALE, "changed") from error
    found = os.fstat(point)
    if found.st_dev == root.device:
        os.close(point)
        return None
    if inode and (found.st_dev, found.st_ino) != (device, inode):
        raise Unstaged(errno.ESTALE, "changed")
    return point


_KINDS: "dict[str, Any]" = {
    "system": _show_system,
    "shown": _show_held,
    "room": _make_room,
    "link": _link,
    "held": _hold,
    "read_only": _hold_read_only,
    "hidden": _hide,
}


def _own_namespaces() -> None:
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) != 0:
        raise Unstaged(ctypes.get_errno(), "user namespace")
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
            os.write(fd, text.encode())
            os.close(fd)
    except OSError as error:
        raise Unstaged(error.errno or 0, "user namespace") from error


def _tree_of(held: int, path: str) -> int:
    """A clone of what is mounted at a held folder or file, found again in this namespace."""
    try:
        again = _open(_AT_FDCWD, path)
    except OSError as error:
        raise Unstaged(errno.ESTALE, "changed") from error
    if not os.path.samestat(os.fstat(held), os.fstat(again)):
        raise Unstaged(errno.ESTALE, "changed")
    return _clone(again)


def _tmpfs(size: int) -> int:
    context = _call(_FSOPEN, b"tmpfs", 1)
    for key, value in ((b"size", str(size).encode()), (b"mode", b"0755")):
        _call(_FSCONFIG, context, 1, key, value, 0)
    _call(_FSCONFIG, context, 6, None, None, 0)
    return _call(_FSMOUNT, context, 1, _NOSUID_NODEV)


def _open(folder: int, path: str) -> int:
    """Hold what is at `path`, reached without following links; below `folder` if it is a descriptor."""
    how = _FROM_ROOT if folder == _AT_FDCWD else _BELOW
    fd: int = _libc.syscall(_OPENAT2, folder, os.fsencode(path), how, _SIZE_24)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "open")
    return fd


def _clone(fd: int) -> int:
    return _call(_OPEN_TREE, fd, b"", _CLONED | _AT_EMPTY_PATH)


def _read_only(tree: int) -> int:
    _set(tree, _RDONLY)
    return tree


def _set(tree: int, attributes: int) -> None:
    wanted = attributes.to_bytes(8, "little") + bytes(24)
    _call(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, wanted, _SIZE_32)


def _cover(point: int, tree: int) -> None:
    """Mount a tree, and let go of both descriptors: there may be more names than a process may hold."""
    _move(tree, point)
    os.close(tree)
    os.close(point)


def _move(tree: int, onto: int) -> None:
    _call(_MOVE_MOUNT, tree, b"", onto, b"", _BY_DESCRIPTORS)


def _how(resolve: int) -> bytes:
    return _PATH.to_bytes(8, "little") + bytes(8) + resolve.to_bytes(8, "little")


_FROM_ROOT, _BELOW = _how(_NO_LINKS), _how(_NO_LINKS | 0x08)


def _call(number: int, *arguments: "Any") -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        if code == errno.ENOENT:
            raise FileNotFoundError(code, "mount")
        raise Unstaged(code, "mount")
    return result
