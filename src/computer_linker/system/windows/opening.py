"""Opening names by handles: each name below an open folder by itself, relative to its handle, and none that leads elsewhere."""

import errno
import os
import stat as modes

from computer_linker.system.windows import nt
from computer_linker.system.windows.names import refused_name
from computer_linker.system.windows.reparse import is_link

O_NOFOLLOW, O_DIRECTORY = 0x1000_0000, 0x2000_0000
_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR
_OPEN_EXISTING, _CREATE_NEW, _OPEN_ALWAYS, _CREATE_ALWAYS, _TRUNCATE = 3, 1, 4, 2, 5
_BACKUP_SEMANTICS, _REPARSE_POINT = 0x02000000, 0x00200000


def descriptor(handle: int, flags: int, path: object) -> int:
    """A descriptor that owns the handle, once it is what the flags ask for."""
    fd: int = nt.crt().open_osfhandle(handle, flags & (os.O_APPEND | _ACCESS))
    found = os.fstat(fd)
    is_folder = modes.S_ISDIR(found.st_mode)
    number = 0
    if flags & O_NOFOLLOW and is_link(handle, found):
        number = errno.ENOTDIR if flags & O_DIRECTORY else errno.ELOOP
    elif flags & O_DIRECTORY and not is_folder:
        number = errno.ENOTDIR
    elif is_folder and flags & _ACCESS:
        number = errno.EISDIR
    if number:
        os.close(fd)
        raise nt.failure(number, path)
    return fd


def _access_of(flags: int) -> int:
    match flags & _ACCESS:
        case os.O_WRONLY:
            asked = nt.GENERIC_WRITE | nt.READ_ATTRIBUTES
        case os.O_RDWR:
            asked = nt.GENERIC_READ | nt.GENERIC_WRITE
        case _:
            asked = nt.GENERIC_READ
    return asked


def opened_path(path: str, flags: int) -> int:
    """A handle of a whole path."""
    if flags & os.O_CREAT:
        how = _CREATE_NEW if flags & os.O_EXCL else _CREATE_ALWAYS if flags & os.O_TRUNC else _OPEN_ALWAYS
    else:
        how = _TRUNCATE if flags & os.O_TRUNC else _OPEN_EXISTING
    options = _BACKUP_SEMANTICS | (_REPARSE_POINT if flags & O_NOFOLLOW else 0)
    handle = nt.kernel32().CreateFileW(nt.native(path), _access_of(flags), nt.SHARE_ALL, None, how, options, None)
    if handle == nt.INVALID_HANDLE:
        raise nt.last_failure(path)
    return int(handle)


def opened_below(folder: int, path: str, flags: int) -> int:
    """A handle of a path below an open folder, as the flags ask for it."""
    if flags & os.O_CREAT:
        how = nt.FILE_CREATE if flags & os.O_EXCL else nt.FILE_OVERWRITE_IF if flags & os.O_TRUNC else nt.FILE_OPEN_IF
    else:
        how = nt.FILE_OVERWRITE if flags & os.O_TRUNC else nt.FILE_OPEN
    options = nt.OPEN_REPARSE_POINT | (nt.DIRECTORY_FILE if flags & O_DIRECTORY else 0)
    if flags & os.O_CREAT:
        options |= nt.NON_DIRECTORY_FILE
    return relative(folder, path, _access_of(flags), how, options)


def relative(folder: int, path: str, access: int, how: int = nt.FILE_OPEN, options: int = 0) -> int:
    """A handle of a path below an open folder; each name before the last must be a folder itself, and no link."""
    *above, last = [name for name in path.split("/") if name not in ("", ".")] or ["."]
    held = -1
    at = nt.handle_of(folder)
    try:
        for name in above:
            nearer = _named(at, name, nt.GENERIC_READ, nt.FILE_OPEN, nt.DIRECTORY_FILE | nt.OPEN_REPARSE_POINT)
            if held >= 0:
                nt.close(held)
            held = at = nearer
            if is_link(held):
                raise nt.failure(errno.ELOOP, path)
        if last == ".":
            return nt.create(at, "", access, nt.FILE_OPEN, nt.OPEN_REPARSE_POINT)
        return _named(at, last, access, how, options | nt.OPEN_REPARSE_POINT)
    finally:
        if held >= 0:
            nt.close(held)


def _named(folder: int, name: str, access: int, how: int, options: int) -> int:
    if name == ".." or refused_name(name) is not None:
        raise nt.failure(errno.EINVAL, name)
    handle = nt.create(folder, name, access, how, options)
    try:
        _check_place(handle, folder, name)
    except OSError:
        nt.close(handle)
        raise
    return handle


def _check_place(handle: int, folder: int, name: str) -> None:
    """Raise FileNotFoundError unless the open file lies in the folder under this very name, as the file system reports it.

    A short alias (8.3) has another name than the scope's rules judged. Anything else that leads away is a link that was followed
    although none should be: wine before version 9 does that with links of the system below it.
    """
    place, _, found = nt.final_path(handle).rpartition("/")
    if found.casefold() != name.casefold() or place.rstrip("/") != nt.final_path(folder).rstrip("/"):
        raise nt.failure(errno.ENOENT, name)
