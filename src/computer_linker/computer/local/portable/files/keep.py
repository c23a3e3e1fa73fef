"""Storing what a change replaces: by a hard link where that is safe, else by a copy."""

from collections.abc import Callable

from computer_linker.computer.facets.files import Inverse, Keeper, Mark
from computer_linker.computer.local.portable.files.trees import copy_bytes
from computer_linker.computer.shown_folders import SHOWN
from computer_linker.model.paths import RootedPath
from computer_linker.system import descriptor_path, link_descriptor, os

MAX_COPIED = 64 << 20
"""A pre-image larger than this is stored only where a hard link is possible."""
MAY_BE_REWRITTEN = (
    "{} is too large to be copied for undo. A program that runs may have it open, and still change what undo restores."
)


def keep_file(
    keeper: Keeper | None, descriptor: int, halted: Callable[[], bool], *, by_link: bool = True
) -> str | None:
    """Store an open regular file; returns its name in the keeper's folder, or None when it could not be stored.

    A hard link is only safe where the file is replaced, not written in place, where it has no other name, and where no program
    runs that may have it open: it could rewrite what is stored.
    """
    if keeper is None:
        return None
    found = os.fstat(descriptor)
    if found.st_size > keeper.room:
        return None
    name = keeper.new_name()
    if by_link and found.st_nlink == 1 and not SHOWN.has(descriptor_path(descriptor)):
        try:
            link_descriptor(descriptor, keeper.folder, name)
            return name
        except OSError:
            # Another file system, or hard links are restricted: fall back to a copy.
            pass
    if found.st_size > MAX_COPIED:
        return None
    return copy_kept(keeper, descriptor, found, name, halted)


def copy_kept(keeper: Keeper, descriptor: int, found: os.stat_result, name: str, halted: Callable[[], bool]) -> str:
    """Store a copy of an open regular file under this name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    made = os.open(name, flags, 0o600, dir_fd=keeper.folder)
    try:
        copy_bytes(descriptor, made, found.st_size, halted)
        os.fchmod(made, found.st_mode & 0o777)
        os.utime(made, ns=(found.st_atime_ns, found.st_mtime_ns))
    except BaseException:
        os.unlink(name, dir_fd=keeper.folder)
        raise
    finally:
        os.close(made)
    return name


def drop_kept(keeper: Keeper | None, name: str | None) -> None:
    """Remove a file that was stored for a change that did not happen."""
    if keeper is not None and name is not None:
        try:
            os.unlink(name, dir_fd=keeper.folder)
        except FileNotFoundError:
            pass


def removing(path: RootedPath, after: Mark) -> Inverse:
    return {"do": "remove", "root": path.root, "path": list(path.parts), "after": after.to_list()}


def restoring(path: RootedPath, kept: str, after: Mark | None, size: int) -> Inverse:
    step: Inverse = {"do": "restore", "root": path.root, "path": list(path.parts), "kept": kept, "bytes": size}
    if after is not None:
        step["after"] = after.to_list()
    return step


def unmaking(path: RootedPath) -> Inverse:
    return {"do": "rmdir", "root": path.root, "path": list(path.parts)}


def remaking(path: RootedPath) -> Inverse:
    return {"do": "mkdir", "root": path.root, "path": list(path.parts)}


def moving(path: RootedPath, to: RootedPath, after: Mark) -> Inverse:
    return {
        "do": "move",
        "root": path.root,
        "path": list(path.parts),
        "toRoot": to.root,
        "to": list(to.parts),
        "after": after.to_list(),
    }
