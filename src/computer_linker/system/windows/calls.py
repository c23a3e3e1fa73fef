"""The os module for code that works by descriptors: what POSIX has and Windows lacks is done here by handles.

`from computer_linker.system import os` gives this on Windows, and the standard library's `os` elsewhere. Names below an open
folder (`dir_fd`) are opened one by one relative to its handle (NtCreateFile), and no link is followed: one at the end of the
name is opened itself or refused as O_NOFOLLOW asks, one before it is refused. Every other name is the standard library's.
"""

import errno
import os
import stat as modes
from collections.abc import Sequence
from typing import Any

from computer_linker.system.windows import nt, opening
from computer_linker.system.windows.folders import Entries, Entry, names_in
from computer_linker.system.windows.names import refused_name
from computer_linker.system.windows.opening import descriptor, opened_below, opened_path, relative
from computer_linker.system.windows.reparse import is_link, link_target

DirEntry = Entry
O_NOFOLLOW, O_DIRECTORY = opening.O_NOFOLLOW, opening.O_DIRECTORY
O_CLOEXEC = O_NONBLOCK = O_NOCTTY = 0
"""Handles are not inherited, and the open of a file never waits: these ask for nothing more here."""
SEEK_DATA, SEEK_HOLE = 3, 4
_PRIVATE = 0o700
_ASIDE = ".~cl-"
"""As the temporaries of `portable/files`, which a later change in the folder sweeps."""
_USER = 1000
"""No superuser's number: what a Windows user may do is not in a number."""
_real_stat, _real_fstat, _real_scandir, _real_listdir = os.stat, os.fstat, os.scandir, os.listdir
_Name = Any


def __getattr__(name: str) -> Any:
    return getattr(os, name)


class _SlashPaths:
    """os.path, whose whole paths have slashes: the rest of the program compares them as text."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os.path, name)

    def realpath(self, path: _Name, *, strict: bool = False) -> str:
        return nt.plain(os.path.realpath(os.fsdecode(path), strict=strict))

    def abspath(self, path: _Name) -> str:
        return nt.plain(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100

    def normpath(self, path: _Name) -> str:
        return nt.plain(os.path.normpath(os.fsdecode(path)))


path = _SlashPaths()


def open(path: _Name, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    """As os.open; always binary, never inherited, and without a lock against others that rename or remove the file."""
    name = os.fsdecode(path)
    handle = opened_path(name, flags) if dir_fd is None else opened_below(dir_fd, name, flags)
    return descriptor(handle, flags, path)


def fstat(fd: int) -> os.stat_result:
    """As os.fstat; see `stat` for the mode."""
    return _private(_real_fstat(fd))


def stat(path: _Name, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
    """As os.stat. The mode has the owner's bits alone: Windows has access lists for others, which bits do not show."""
    if isinstance(path, int):
        return fstat(path)
    if dir_fd is None:
        return _private(_real_stat(path, follow_symlinks=follow_symlinks))
    handle = relative(dir_fd, os.fsdecode(path), nt.READ_ATTRIBUTES)
    fd = nt.crt().open_osfhandle(handle, 0)
    try:
        found = _real_fstat(fd)
        return _private(found, modes.S_IFLNK if is_link(handle, found) else 0)
    finally:
        os.close(fd)


def lstat(path: _Name, *, dir_fd: int | None = None) -> os.stat_result:
    """As os.lstat."""
    return stat(path, dir_fd=dir_fd, follow_symlinks=False)


_HIDDEN_FIELDS = (
    "st_atime", "st_mtime", "st_ctime", "st_atime_ns", "st_mtime_ns", "st_ctime_ns", "st_file_attributes", "st_reparse_tag",
)  # fmt: skip


def _private(found: os.stat_result, kind: int = 0) -> os.stat_result:
    mode = (kind or modes.S_IFMT(found.st_mode)) | (found.st_mode & _PRIVATE)
    more = {name: getattr(found, name) for name in _HIDDEN_FIELDS}
    return os.stat_result((mode, *found[1:4], _USER, _USER, *found[6:10]), more)


def access(path: _Name, mode: int, *, dir_fd: int | None = None, effective_ids: bool = False) -> bool:
    """As os.access: whether the name is there, and for writing, whether it is not marked read-only."""
    if dir_fd is None:
        return os.access(path, mode)
    try:
        found = stat(path, dir_fd=dir_fd)
    except OSError:
        return False
    return not mode & os.W_OK or bool(found.st_mode & modes.S_IWUSR)


def mkdir(path: _Name, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
    """As os.mkdir."""
    if dir_fd is None:
        os.mkdir(path, mode)  # noqa: PTH102
        return
    nt.close(relative(dir_fd, os.fsdecode(path), nt.GENERIC_READ, nt.FILE_CREATE, nt.DIRECTORY_FILE))


def unlink(path: _Name, *, dir_fd: int | None = None) -> None:
    """As os.unlink. The name goes at once, also while the file is open."""
    _remove(path, dir_fd, nt.NON_DIRECTORY_FILE)


def rmdir(path: _Name, *, dir_fd: int | None = None) -> None:
    """As os.rmdir."""
    _remove(path, dir_fd, nt.DIRECTORY_FILE)


def _remove(path: _Name, folder: int | None, kind: int) -> None:
    if folder is None:
        (os.rmdir if kind == nt.DIRECTORY_FILE else os.unlink)(path)
        return
    handle = relative(folder, os.fsdecode(path), nt.DELETE | nt.READ_ATTRIBUTES, nt.FILE_OPEN, kind)
    try:
        nt.remove(handle)
    finally:
        nt.close(handle)


def rename(source: _Name, target: _Name, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
    """As os.rename of POSIX: replaces a file."""
    if src_dir_fd is None or dst_dir_fd is None:
        os.replace(source, target)  # noqa: PTH105
        return
    _rename(src_dir_fd, os.fsdecode(source), dst_dir_fd, os.fsdecode(target), replaces=True)


def rename_new(source_folder: int, source: str, folder: int, name: str) -> None:
    """Rename without replacing anything. Raises FileExistsError when the name is taken."""
    _rename(source_folder, source, folder, name, replaces=False)


def _rename(source_folder: int, source: str, folder: int, name: str, *, replaces: bool) -> None:
    if refused_name(name) is not None:
        raise nt.failure(errno.EINVAL, name)
    handle = relative(source_folder, source, nt.DELETE | nt.READ_ATTRIBUTES)
    try:
        nt.rename(handle, nt.handle_of(folder), name, replaces=replaces)
    except PermissionError:
        if not replaces:
            raise
        _replace_open(handle, folder, name)
    finally:
        nt.close(handle)


def _replace_open(handle: int, folder: int, name: str) -> None:
    """Replace a file that is open, where the file system cannot (before Windows 10, and wine): put it aside first.

    A crash in between leaves the name absent, and the old file as a temporary.
    """
    aside = f"{_ASIDE}{os.urandom(12).hex()}"
    old = relative(folder, name, nt.DELETE | nt.READ_ATTRIBUTES)
    try:
        nt.rename(old, nt.handle_of(folder), aside, replaces=False)
        try:
            nt.rename(handle, nt.handle_of(folder), name, replaces=False)
        except OSError:
            nt.rename(old, nt.handle_of(folder), name, replaces=False)
            raise
        nt.remove(old)
    finally:
        nt.close(old)


def link(
    source: _Name,
    target: _Name,
    *,
    src_dir_fd: int | None = None,
    dst_dir_fd: int | None = None,
    follow_symlinks: bool = True,
) -> None:
    """As os.link; never of a link's target."""
    if src_dir_fd is None or dst_dir_fd is None:
        os.link(source, target)
        return
    handle = relative(src_dir_fd, os.fsdecode(source), nt.WRITE_ATTRIBUTES | nt.READ_ATTRIBUTES)
    try:
        if modes.S_ISDIR(stat(source, dir_fd=src_dir_fd).st_mode):
            raise nt.failure(errno.EISDIR, source)
        link_handle(handle, dst_dir_fd, os.fsdecode(target))
    finally:
        nt.close(handle)


def link_handle(handle: int, folder: int, name: str) -> None:
    """Link an open file as `name` in `folder`; never replaces."""
    if refused_name(name) is not None:
        raise nt.failure(errno.EINVAL, name)
    done = nt.set_information(handle, nt.LINK, nt.with_target(nt.handle_of(folder), name, 0))
    if done:
        raise nt.status_failure(done, name)


def readlink(path: _Name, *, dir_fd: int | None = None) -> str:
    """As os.readlink, with slashes; an absolute target begins with one. Raises EINVAL for what is no link."""
    if dir_fd is None:
        return str(os.readlink(path)).replace("\\", "/")  # noqa: PTH115
    handle = relative(dir_fd, os.fsdecode(path), nt.READ_ATTRIBUTES)
    try:
        return link_target(handle)
    finally:
        nt.close(handle)


def symlink(source: _Name, target: _Name, target_is_directory: bool = False, *, dir_fd: int | None = None) -> None:
    """As os.symlink, by path alone: below an open folder none is made."""
    if dir_fd is not None:
        raise nt.failure(errno.EOPNOTSUPP, target)
    os.symlink(source, target, target_is_directory)  # noqa: PTH211


def scandir(path: _Name = ".") -> Any:
    """As os.scandir, also of an open folder."""
    return Entries(path, stat) if isinstance(path, int) else _real_scandir(path)


def listdir(path: _Name = ".") -> list[str]:
    """As os.listdir, also of an open folder."""
    return names_in(path) if isinstance(path, int) else _real_listdir(path)


def pread(fd: int, count: int, offset: int) -> bytes:
    """As os.pread."""
    return nt.read_at(nt.handle_of(fd), count, offset)


def pwrite(fd: int, data: bytes, offset: int) -> int:
    """As os.pwrite."""
    return nt.write_at(nt.handle_of(fd), bytes(data), offset)


def lseek(fd: int, offset: int, whence: int) -> int:
    """As os.lseek; a file has no holes here, so its data reaches from any place to its end."""
    if whence not in (SEEK_DATA, SEEK_HOLE):
        return os.lseek(fd, offset, whence)
    size = _real_fstat(fd).st_size
    if offset >= size:
        raise nt.failure(errno.ENXIO)
    return os.lseek(fd, offset if whence == SEEK_DATA else size, os.SEEK_SET)


def readv(fd: int, buffers: Sequence[memoryview]) -> int:
    """As os.readv into one buffer."""
    data = os.read(fd, len(buffers[0]))
    buffers[0][: len(data)] = data
    return len(data)


def fchmod(fd: int, mode: int) -> None:
    """Mark a file read-only, or not; Windows has no other bits."""
    if not modes.S_ISDIR(_real_fstat(fd).st_mode):
        nt.set_read_only(nt.handle_of(fd), not mode & modes.S_IWUSR)


def fchown(fd: int, uid: int, gid: int) -> None:
    """Nothing: a file is its creator's."""


def utime(
    path: _Name,
    times: Any = None,
    *,
    ns: tuple[int, int] | None = None,
    dir_fd: int | None = None,
    follow_symlinks: bool = True,
) -> None:
    """As os.utime, also of an open file or folder."""
    if isinstance(path, int):
        with nt.with_write_attributes(nt.handle_of(path)) as handle:
            nt.set_times(handle, ns)
    elif dir_fd is not None:
        handle = relative(dir_fd, os.fsdecode(path), nt.WRITE_ATTRIBUTES)
        try:
            nt.set_times(handle, ns)
        finally:
            nt.close(handle)
    elif ns is not None:
        os.utime(path, ns=ns)
    else:
        os.utime(path, times)


def set_blocking(fd: int, blocking: bool) -> None:
    """Nothing: the pipes of Windows are read by threads here."""


def getuid() -> int:
    """The owner of every file that `stat` shows. Users are told apart by their SID, where that matters."""
    return _USER


geteuid = getgid = getegid = getuid
