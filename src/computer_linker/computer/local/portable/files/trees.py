"""Folder trees: scanning, copying and removing; links are never followed."""

import errno
import stat as modes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from computer_linker.computer.local.portable.files.open import FOLDER, READ, walk_below
from computer_linker.computer.local.portable.openat2 import RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, openat2, openat2_works
from computer_linker.errors import Aborted, LimitExceeded
from computer_linker.model.paths import RootedPath
from computer_linker.system import os

MAX_ENTRIES = 1_000_000
MAX_DEPTH = 200
MAX_COPIED = 4 << 30
"""More is not copied in one operation: a sparse file of terabytes would fill the disk."""
_CHUNK = 1 << 20
Parts = tuple[str, ...]
Halted = Callable[[], bool]
Judge = Callable[[Parts, bool], bool]
"""Called for every entry with its path below the folder and whether it is a folder; False skips it."""


@dataclass(slots=True)
class Scan:
    """The contents of a folder: entries (itself included), bytes of its files, and the newest change time."""

    entries: int = 1
    bytes: int = 0
    newest_ns: int = 0
    left_out: int = 0
    odd: int = 0
    """Links, devices, pipes and sockets, which a copy skips."""
    closed: set[int] = field(default_factory=set)
    """The inodes of files that were skipped."""
    shared: dict[Parts, int] = field(default_factory=dict)
    """Files with more than one hard link, and their inodes."""
    folders: list[Parts] = field(default_factory=list)
    files: list[Parts] = field(default_factory=list)


def scan_tree(folder: int, *, judge: Judge | None = None, halted: Halted, keep_names: bool = False) -> Scan:
    """Scan the tree beneath the open `folder`."""
    scan = Scan(newest_ns=os.fstat(folder).st_mtime_ns)
    todo: list[Parts] = [()]
    while todo:
        parts = todo.pop()
        if len(parts) > MAX_DEPTH:
            raise LimitExceeded(f"The folder is more than {MAX_DEPTH} levels deep.", maxDepth=MAX_DEPTH)
        if halted():
            raise Aborted("The walk was stopped.")
        opened = open_below(folder, parts, FOLDER)
        try:
            with os.scandir(opened) as entries:
                for entry in entries:
                    _count(scan, entry, (*parts, entry.name), judge, todo, keep_names)
        finally:
            os.close(opened)
    return scan


def _count(
    scan: Scan, entry: "os.DirEntry[str]", below: Parts, judge: Judge | None, todo: list[Parts], keep_names: bool
) -> None:
    found = entry.stat(follow_symlinks=False)
    is_folder = modes.S_ISDIR(found.st_mode)
    if judge is not None and not judge(below, is_folder):
        scan.left_out += 1
        scan.closed.add(found.st_ino)
        return
    scan.entries += 1
    if scan.entries > MAX_ENTRIES:
        raise LimitExceeded(f"The folder has more than {MAX_ENTRIES} entries.", maxEntries=MAX_ENTRIES)
    scan.newest_ns = max(scan.newest_ns, found.st_mtime_ns)
    if is_folder:
        todo.append(below)
        if keep_names:
            scan.folders.append(below)
    elif modes.S_ISREG(found.st_mode):
        scan.bytes += found.st_size
        if keep_names:
            scan.files.append(below)
            if found.st_nlink > 1:
                scan.shared[below] = found.st_ino
    else:
        scan.odd += 1


def leave_out_twins(scan: Scan, closed: set[int]) -> None:
    """Skip hard links to a file that the scope's rules close: a copy would disclose it."""
    twins = {parts for parts, number in scan.shared.items() if number in scan.closed or number in closed}
    for parts in twins:
        del scan.shared[parts]
    scan.files = [parts for parts in scan.files if parts not in twins]
    scan.left_out += len(twins)


def refuse_too_large(size: int, path: RootedPath) -> None:
    """Refuse to copy more than one operation may."""
    if size > MAX_COPIED:
        raise LimitExceeded(
            f"{path.shown} is too large to copy in one operation.", path=path.shown, maxBytes=MAX_COPIED
        )


def open_below(folder: int, parts: Parts, flags: int) -> int:
    """Open names below an open folder, following no link."""
    if not parts:
        return os.open(".", flags | os.O_CLOEXEC, dir_fd=folder)
    if openat2_works():
        return openat2(folder, os.fsencode("/".join(parts)), flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
    return walk_below(folder, parts, flags | os.O_NOFOLLOW)


def copy_tree(source: int, scan: Scan, target: int, halted: Halted) -> None:
    """Copy the folders and regular files listed by `scan` into the empty open folder `target`."""
    for parts in sorted(scan.folders, key=len):
        above = open_below(target, parts[:-1], FOLDER)
        try:
            os.mkdir(parts[-1], dir_fd=above)
        finally:
            os.close(above)
    for parts in scan.files:
        _copy_one(source, target, parts, halted)


def _copy_one(source: int, target: int, parts: Parts, halted: Halted) -> None:
    opened = open_below(source, parts, READ)
    try:
        found = os.fstat(opened)
        if not modes.S_ISREG(found.st_mode):
            return
        above = open_below(target, parts[:-1], FOLDER)
        try:
            made = os.open(
                parts[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=above
            )
        finally:
            os.close(above)
        try:
            copy_bytes(opened, made, found.st_size, halted)
            os.fchmod(made, found.st_mode & 0o777)
            os.utime(made, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(made)
    finally:
        os.close(opened)


def link_tree(
    folder: int, name: str, target: int, new_name: str, halted: Halted, *, copies_files: bool = False
) -> None:
    """Recreate a folder elsewhere on its file system with hard links of all its files; or hard-link a single file.

    Folders cannot be hard-linked, so none is moved, whatever is swapped meanwhile. With `copies_files` regular files are copied:
    a program that has one open cannot change the copy.
    """
    try:
        source = os.open(name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
        return
    try:
        os.mkdir(new_name, 0o700, dir_fd=target)
        made = os.open(new_name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=target)
        try:
            _link_below(source, made, halted, copies_files=copies_files)
        finally:
            os.close(made)
    finally:
        os.close(source)


def _link_below(source: int, target: int, halted: Halted, *, copies_files: bool) -> None:
    folders: list[Parts] = [()]
    for parts in folders:
        if halted():
            raise Aborted("The removal was stopped.")
        if len(parts) > MAX_DEPTH:
            raise LimitExceeded(f"The folder is more than {MAX_DEPTH} levels deep.", maxDepth=MAX_DEPTH)
        with _opened(source, parts) as here, _opened(target, parts) as there, os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    os.mkdir(entry.name, 0o700, dir_fd=there)
                    folders.append((*parts, entry.name))
                elif copies_files and entry.is_file(follow_symlinks=False):
                    _copy_one(here, there, (entry.name,), halted)
                else:
                    os.link(entry.name, entry.name, src_dir_fd=here, dst_dir_fd=there, follow_symlinks=False)
    for parts in reversed(folders):
        with _opened(source, parts) as here, _opened(target, parts) as there:
            found = os.fstat(here)
            os.fchmod(there, found.st_mode & 0o777)
            os.utime(there, ns=(found.st_atime_ns, found.st_mtime_ns))


@contextmanager
def _opened(folder: int, parts: Parts) -> Iterator[int]:
    fd = open_below(folder, parts, FOLDER)
    try:
        yield fd
    finally:
        os.close(fd)


def copy_bytes(source: int, target: int, size: int, halted: Halted) -> None:
    """Copy at most `size` bytes from the start of one open file to the end of another."""
    at = 0
    while at < size:
        if halted():
            raise Aborted("The copy was stopped.")
        data = os.pread(source, min(_CHUNK, size - at), at)
        if not data:
            return
        write_all(target, data)
        at += len(data)


def write_all(target: int, data: bytes | memoryview) -> None:
    """Write every byte, repeating short writes."""
    left = memoryview(data)
    while left:
        left = left[os.write(target, left) :]


def remove_tree(folder: int, name: str) -> None:
    """Remove a file or a whole folder. A link is removed, never its target."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not modes.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=folder)
        return
    opened = os.open(name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        empty_tree(opened)
    finally:
        os.close(opened)
    os.rmdir(name, dir_fd=folder)


def empty_tree(folder: int) -> None:
    """Remove everything in an open folder, deepest first, holding only one more descriptor at a time."""
    todo: list[Parts] = [()]
    seen: list[Parts] = []
    while todo:
        parts = todo.pop()
        opened = open_below(folder, parts, FOLDER)
        try:
            with os.scandir(opened) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append((*parts, entry.name))
                        seen.append((*parts, entry.name))
                    else:
                        os.unlink(entry.name, dir_fd=opened)
        finally:
            os.close(opened)
    for parts in reversed(seen):
        above = open_below(folder, parts[:-1], FOLDER)
        try:
            os.rmdir(parts[-1], dir_fd=above)
        finally:
            os.close(above)
