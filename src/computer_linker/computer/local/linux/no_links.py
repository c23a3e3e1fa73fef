"""Executes a program for which the links in some folders lead nowhere. Run as a script: it enters namespaces of its own.

`python -I -S no_links.py ORDER PROGRAM ARGUMENT...`, with the held folders as inherited descriptors. ORDER is `order`'s.

A program that reads or writes a folder by names follows the links in it, and a command may exchange a file with a link at any
moment, also between that program's look and its open. Each folder is mounted on itself so that the kernel follows no link below
it (`nosymfollow`); links can still be read as such. Then the program's Landlock rules are applied, which forbid mounts.

Where the kernel lets this user make no mounts, the program runs without: there commands have no sandbox that closes names either.
That is decided before a folder is touched; any later failure ends this process, because the folders' contents may cause it.
Imports little, because the program waits for it.
"""

import ctypes
import errno
import marshal
import os
import sys

if __name__ == "__main__":
    # Isolated and without `site`, the package is not on the path.
    sys.path.insert(0, __file__.removesuffix("/computer_linker/computer/local/linux/no_links.py"))

from computer_linker.computer.local.linux.landlock_calls import restrict
from computer_linker.computer.local.linux.mount_calls import (
    AT_FDCWD,
    CLONE_NEWNS,
    NOSYMFOLLOW,
    clone,
    cover,
    libc,
    open_path,
    own_namespaces,
    set_attributes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from computer_linker.computer.local.linux.fence import FenceRules

_MS_REC, _MS_SLAVE = 1 << 14, 1 << 19
_CHANGED = (errno.ESTALE, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def order(folders: "list[int]", fence: "FenceRules | None") -> str:
    """The argument for this script: the held folders, and the Landlock rules."""
    return marshal.dumps((folders, None if fence is None else tuple(fence))).hex()


def main(given: str, *argv: str) -> None:
    folders, fence = marshal.loads(bytes.fromhex(given))  # noqa: S302  # from the service alone
    try:
        _forbid_links(folders)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            why = (
                b"the folder changed while it was opened" if error.errno in _CHANGED else b"links could not be disabled"
            )
            os.write(2, b"fatal: " + why + b"\n")
            os._exit(128)
    if fence is not None:
        restrict(*fence)
    # What the program needs of them it opens by name.
    os.closerange(3, 1 << 16)
    os.execv(argv[0], argv)  # noqa: S606  # the service's own choice


def _forbid_links(folders: "list[int]") -> None:
    here, was = os.getcwd(), os.stat(".")  # noqa: PTH109, PTH116  # pathlib is slow to import
    places = sorted((os.readlink(b"/proc/self/fd/%d" % fd), fd) for fd in folders)  # noqa: PTH115
    if not _can_forbid():
        return
    covered: list[bytes] = []
    for place, fd in places:
        if any(place == each or place.startswith(each.rstrip(b"/") + b"/") for each in covered):
            continue
        point = open_path(AT_FDCWD, place)
        if not os.path.samestat(os.fstat(point), os.fstat(fd)):
            raise OSError(errno.ESTALE, "changed")
        tree = clone(point)
        set_attributes(tree, NOSYMFOLLOW)
        cover(point, tree)
        covered.append(place)
    # By name, so that it lies on the new mount.
    os.chdir(here)
    if not os.path.samestat(os.stat("."), was):  # noqa: PTH116
        raise OSError(errno.ESTALE, "changed")


def _can_forbid() -> bool:
    """Enter namespaces for the mounts; False where this user cannot, or the kernel has no `nosymfollow` (before Linux 5.14)."""
    try:
        _own_mounts()
        set_attributes(-1, NOSYMFOLLOW)
    except OSError as error:
        # The kernel checks the attributes before the descriptor.
        return error.errno == errno.EBADF
    return True


def _own_mounts() -> None:
    """Enter a mount namespace from which nothing propagates; a superuser keeps the rights to files of others."""
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNS) != 0:
        own_namespaces()
    if libc.mount(None, b"/", None, _MS_REC | _MS_SLAVE, None) != 0:
        raise OSError(ctypes.get_errno(), "mount")


if __name__ == "__main__":
    main(*sys.argv[1:])
