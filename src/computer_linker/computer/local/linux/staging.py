"""The staged root of a sandboxed program, built in the launcher's child from descriptors the service holds.

It is built in the child's own user and mount namespace, with the mount calls that take descriptors (Linux 5.12), so that
no path below a folder a command can write is ever resolved twice. Then the child changes to a root of its own, a small tmpfs
in which no name can be swapped, with that root and what bubblewrap needs to start. bubblewrap binds the finished root as a
whole, and its own user namespace locks the mounts that cover names.

The kernel clones no mount of another namespace, so a held folder is opened again by its path, without following links, and
must be the same folder.

A root may be staged before its program is known. Every name in it that lies on the disk is looked at once more when the order
is there: it must still be the mount that was put there, or still be missing. Imports little, like all of the launcher.
"""

import errno
import os

from computer_linker.computer.local.linux.id_maps import BEYOND, IdMaps
from computer_linker.computer.local.linux.launcher_protocol import STAGED_NAME
from computer_linker.computer.local.linux.mount_calls import (
    AT_FDCWD,
    NODEV,
    NOEXEC,
    NOSUID,
    RDONLY,
    Unstaged,
    change_root,
    clone,
    clone_at,
    cover,
    filesystem,
    mount_at,
    move,
    open_path,
    own_namespaces,
    read_only,
    set_attributes,
    set_own_attributes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEVICES = (b"null", b"zero", b"full", b"random", b"urandom", b"tty")
_DEVICE_LINKS = (
    (b"fd", "/proc/self/fd"), (b"stdin", "/proc/self/fd/0"), (b"stdout", "/proc/self/fd/1"), (b"stderr", "/proc/self/fd/2"),
    (b"core", "/proc/kcore"), (b"ptmx", "pts/ptmx"),
)  # fmt: skip
_FOR_BUBBLEWRAP = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "nix", "gnu", "snap")
"""The folders of its executable, libraries and loader."""
OLD_ROOT = b"disk"
"""Where the machine's own root is, until it is detached."""
_ABSENT, _NO_FOLDER = 0, -1
"""Nothing of the disk is at a name; the second may also be a link of the disk. Neither is a mount."""


def stage(order: "dict[str, Any]", held: list[int], maps: "IdMaps | None") -> "StagedRoot":
    """Build the root that `order` describes from the `held` descriptors, and change root: it is then at /STAGED_NAME."""
    paths = [os.readlink(b"/proc/self/fd/%d" % fd) for fd in held]  # noqa: PTH115  # pathlib is slow to import
    if maps is None:
        own_namespaces()
    else:
        maps.enter_outer()
    # Before anything is mounted: afterwards a path below /tmp resolves differently.
    trees = [_tree_of(fd, path) for fd, path in zip(held, paths, strict=True)]
    root = StagedRoot(order["room"], os.geteuid() if maps is None else BEYOND, order["terminal"])
    try:
        for kind, at, *rest in order["mounts"]:
            _KINDS[kind](root, at, trees, *rest)
    except FileNotFoundError as error:
        raise Unstaged(errno.ESTALE, "changed") from error
    root.enter()
    return root


def rehearse() -> None:
    """Make the calls without effect, so that the memory they touch is copied before an order arrives."""
    try:
        fd = open_path(AT_FDCWD, b"/")
        _is_folder(os.fstat(fd))
        os.close(fd)
        cover(-1, -1)
    except OSError:
        return


class StagedRoot:
    """The root being built: a folder of a small tmpfs, which also contains the covers of hidden names."""

    def __init__(self, size: int, owner: int, terminal: int | None) -> None:
        """`owner` gets the covers: a superuser with capabilities could read those of any id it has."""
        self.terminal = terminal
        self.on_disk: dict[bytes, int] = {}
        """What is at each name that lies in a folder of the disk: a mount of ours (`mount_at`), or nothing of the disk's."""
        base = self.base = filesystem(b"tmpfs", (b"size", b"%d" % size), (b"mode", b"0755"))
        # Any folder would do; bubblewrap needs this one to exist as well.
        move(base, open_path(AT_FDCWD, b"/tmp"))
        self.device = os.fstat(base).st_dev
        self._rooms = 0
        self.lowers: list[tuple[bytes, int]] = []
        """Viewed folders: the path inside, and the real folder below the overlay."""
        self.fd = self.room(STAGED_NAME.encode())
        covers = self.room(b"folder", 0o555)
        os.close(os.open(b"file", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0, dir_fd=base))
        for name in (b"folder", b"file"):
            os.chown(name, owner, -1, dir_fd=base)
        self.empty_folder = read_only(clone(covers))
        self.empty_file = read_only(clone(open_path(base, b"file")))
        for name, tree in ((b"folder", self.empty_folder), (b"file", self.empty_file)):
            # A detached mount cannot be cloned again.
            move(tree, open_path(base, name))

    def room(self, name: bytes = b"", mode: int = 0o755) -> int:
        """A new folder of the tmpfs."""
        self._rooms += 1
        name = name or b"room-%d" % self._rooms
        os.mkdir(name, mode, dir_fd=self.base)
        return open_path(self.base, name)

    def attach(self, tree: int) -> int:
        """Mount a tree outside the staged root: overlayfs takes only mounts of this namespace."""
        move(tree, self.room())
        return tree

    def is_ours(self, fd: int) -> bool:
        return os.fstat(fd).st_dev == self.device

    def cover(self, at: bytes, point: int, tree: int) -> None:
        """Mount a tree at a path, and close both descriptors."""
        self.note(at, point, tree)
        cover(point, tree)

    def note(self, at: bytes, point: int, tree: int) -> None:
        """Remember what is about to be mounted on a name of the disk; no other process can reach one of ours."""
        if self.is_ours(point):
            self.on_disk.pop(at, None)
        else:
            self.on_disk[at] = mount_at(tree)

    def verify(self) -> None:
        """Look at the names on the disk again: none may have been moved, replaced or made since."""
        for at, mount in self.on_disk.items():
            if not self._is_same(at, mount):
                raise Unstaged(errno.ESTALE, "changed")

    def _is_same(self, at: bytes, mount: int) -> bool:
        try:
            fd = open_path(self.fd, at)
        except OSError as error:
            return error.errno == errno.ENOENT if mount == _ABSENT else mount == _NO_FOLDER and _is_no_folder(error)
        try:
            return self.is_ours(fd) if mount in (_ABSENT, _NO_FOLDER) else mount_at(fd) == mount
        finally:
            os.close(fd)

    def point(self, at: bytes, *, is_folder: bool = True) -> int:
        """The mount point; created if it is missing, but never in a folder of the disk."""
        if not at:
            return self.fd
        try:
            return open_path(self.fd, at)
        except FileNotFoundError:
            above, _, name = at.rpartition(b"/")
            parent = self.point(above)
            if not self.is_ours(parent):
                raise
            if is_folder:
                os.mkdir(name, 0o755, dir_fd=parent)
            else:
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o444, dir_fd=parent))
            return open_path(parent, name)

    def enter(self) -> None:
        """Make the tmpfs the root of this process."""
        for name in (b"tmp", b"proc", OLD_ROOT):
            os.mkdir(name, 0o755, dir_fd=self.base)
        cover(open_path(self.base, b"proc"), clone_at(b"/proc"))
        for link in _FOR_BUBBLEWRAP:
            os.symlink(f"{STAGED_NAME}/{link}", link, dir_fd=self.base)
        change_root(self.base, OLD_ROOT)


def _show_system(root: StagedRoot, at: bytes, _trees: list[int]) -> None:
    """Mount a system folder or file read-only, where it exists."""
    try:
        tree = clone_at(b"/" + at)
    except FileNotFoundError:
        return
    set_attributes(tree, NOSUID | NODEV | RDONLY)
    root.cover(at, root.point(at, is_folder=_is_folder(os.fstat(tree))), tree)


def _show_held(root: StagedRoot, at: bytes, trees: list[int], index: int, is_read_only: bool) -> None:
    """Mount what the service holds at its path; in a folder of the disk only where it really lies there."""
    tree = trees[index]
    found = os.fstat(tree)
    set_attributes(tree, NOSUID | NODEV | (RDONLY if is_read_only else 0))
    point = root.point(at, is_folder=_is_folder(found))
    if not root.is_ours(point) and not os.path.samestat(found, os.fstat(point)):
        raise Unstaged(errno.ESTALE, "changed")
    if at:
        root.cover(at, point, tree)
    else:
        move(tree, point)
        root.fd = tree


def _show_view(root: StagedRoot, at: bytes, trees: list[int], index: int, store: int, only: bytes) -> None:
    """Mount a held folder with an overlay: the program's changes go to the store's `upper`, the folder stays as it is."""
    lower, kept = root.attach(read_only(trees[index])), root.attach(trees[store])
    overlay = filesystem(
        b"overlay",
        (b"lowerdir", b"/proc/self/fd/%d" % lower),
        (b"upperdir", b"/proc/self/fd/%d/upper" % kept),
        (b"workdir", b"/proc/self/fd/%d/work" % kept),
        (b"userxattr", None),
    )
    _put_view(root, at, overlay, lower, only)


def _show_copy(root: StagedRoot, at: bytes, trees: list[int], index: int, store: int, only: bytes) -> None:
    """Mount the copy of a held folder in its place: for folders that overlayfs cannot cover."""
    lower, kept = root.attach(read_only(trees[index])), root.attach(trees[store])
    upper = open_path(kept, b"upper")
    copy = clone(upper)
    os.close(upper)
    set_attributes(copy, NOSUID | NODEV)
    _put_view(root, at, copy, lower, only)


def _put_view(root: StagedRoot, at: bytes, tree: int, lower: int, only: bytes) -> None:
    """Mount a view; where `only` names a folder in it, nothing else of it can be written."""
    point = root.point(at)
    root.note(at, point, tree)
    move(tree, point)
    os.close(point)
    if only:
        inner = open_path(tree, only)
        cover(inner, clone(inner))
        set_own_attributes(tree, NOSUID | NODEV | RDONLY)
    os.close(tree)
    root.lowers.append((at, lower))


def _make_room(root: StagedRoot, at: bytes, _trees: list[int]) -> None:
    """Mount an empty tmpfs for the program to write to."""
    try:
        point = root.point(at)
    except OSError as error:
        if _is_no_folder(error):
            # The disk's own entry is visible here: a link, or none.
            root.on_disk[at] = _NO_FOLDER
            return
        raise
    if not root.is_ours(point):
        root.cover(at, point, clone(root.room()))


def _make_devices(root: StagedRoot, at: bytes, trees: list[int]) -> None:
    """Mount the devices every program may use, and a private devpts."""
    _make_room(root, at, trees)
    devices = [(name, b"/dev/" + name) for name in _DEVICES]
    if root.terminal is not None:
        # Programs look up their terminal by device number among all names in /dev.
        devices.append((b"console", os.ttyname(root.terminal).encode()))
    for name, source in devices:
        tree = clone_at(source)
        set_attributes(tree, NOSUID)
        root.cover(at + b"/" + name, root.point(at + b"/" + name, is_folder=False), tree)
    folder = root.point(at)
    for name, target in _DEVICE_LINKS:
        os.symlink(target, name, dir_fd=folder)
    os.mkdir(b"shm", dir_fd=folder)
    pts = filesystem(
        b"devpts", (b"newinstance", None), (b"ptmxmode", b"0666"), (b"mode", b"620"), attributes=NOSUID | NOEXEC
    )
    root.cover(at + b"/pts", root.point(at + b"/pts"), pts)


def _write_file(root: StagedRoot, at: bytes, _trees: list[int], text: str) -> None:
    """Mount a read-only file with this text on a file; one that is missing is made, but never in a folder of the disk.

    Each character is a byte; a script can be executed.
    """
    try:
        point = root.point(at, is_folder=False)
    except FileNotFoundError:
        return
    # Not by the descriptor's number: the kernel uses it again for the next one.
    name = b"text-" + at.replace(b"/", b"-")[-200:]
    mode = 0o555 if text.startswith("#!") else 0o444
    fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=root.base)
    os.write(fd, text.encode("latin-1"))
    os.close(fd)
    root.cover(at, point, read_only(clone(open_path(root.base, name))))


def _link(root: StagedRoot, at: bytes, _trees: list[int], target: str) -> None:
    """Create a link, unless a folder of the disk is mounted there, which has its own."""
    above, _, name = at.rpartition(b"/")
    try:
        parent = root.point(above)
        if root.is_ours(parent):
            os.symlink(target, name, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EEXIST, errno.ELOOP, errno.ENOTDIR):
            raise


def _hold(root: StagedRoot, at: bytes, _trees: list[int], device: int, inode: int) -> None:
    """Bind a name on itself, so that it can be neither renamed nor removed."""
    point, _ = _seen(root, at, device, inode)
    if point is not None:
        root.cover(at, point, clone(point))


def _hold_read_only(root: StagedRoot, at: bytes, _trees: list[int], device: int, inode: int) -> None:
    point, _ = _seen(root, at, device, inode)
    if point is not None:
        root.cover(at, point, read_only(clone(point)))


def _hide(root: StagedRoot, at: bytes, _trees: list[int], device: int, inode: int) -> None:
    """Mount an empty file or folder on a name."""
    point, is_folder = _seen(root, at, device, inode)
    if point is not None:
        root.cover(at, point, clone(root.empty_folder if is_folder else root.empty_file))


def _seen(root: StagedRoot, at: bytes, device: int, inode: int) -> tuple[int | None, bool]:
    """The entry the service inspected (any, without an inode); None when there is none, or only one of ours."""
    if not at:
        # The root itself cannot be covered: every other name is resolved from it.
        raise Unstaged(errno.EINVAL, "mount")
    try:
        point = open_path(root.fd, at)
        found = os.fstat(point)
        if found.st_dev == root.device:
            os.close(point)
            root.on_disk.setdefault(at, _ABSENT)
            return None, False
        found = _below_view(root, at) or found
    except FileNotFoundError:
        root.on_disk.setdefault(at, _ABSENT)
        return None, False
    except OSError as error:
        raise Unstaged(errno.ESTALE, "changed") from error
    if inode and (found.st_ino != inode or found.st_dev != device):
        raise Unstaged(errno.ESTALE, "changed")
    return point, _is_folder(found)


def _below_view(root: StagedRoot, at: bytes) -> os.stat_result | None:
    """The real entry of a name in a viewed folder, whose overlay has inodes of its own; None outside of views."""
    for above, lower in root.lowers:
        if at.startswith(above + b"/"):
            real = open_path(lower, at[len(above) + 1 :])
            try:
                return os.fstat(real)
            finally:
                os.close(real)
    return None


_KINDS: "dict[str, Any]" = {
    "system": _show_system,
    "shown": _show_held,
    "view": _show_view,
    "copied": _show_copy,
    "room": _make_room,
    "devices": _make_devices,
    "link": _link,
    "file": _write_file,
    "held": _hold,
    "read_only": _hold_read_only,
    "hidden": _hide,
}


def _tree_of(held: int, path: bytes) -> int:
    """A clone of the mount at a held folder or file, opened again in this namespace."""
    try:
        again = open_path(AT_FDCWD, path)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EPERM):
            raise Unstaged(error.errno, "mount") from error
        raise Unstaged(errno.ESTALE, "changed") from error
    if not os.path.samestat(os.fstat(held), os.fstat(again)):
        raise Unstaged(errno.ESTALE, "changed")
    return clone(again)


def _is_no_folder(error: OSError) -> bool:
    return error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)


def _is_folder(found: os.stat_result) -> bool:
    return found.st_mode & 0o170000 == 0o040000
