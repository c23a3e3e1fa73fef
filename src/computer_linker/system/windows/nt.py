"""The calls of Windows that the descriptor layer needs, with their types; loaded on first use."""

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import wintypes
from functools import cache
from importlib import import_module
from typing import Any

READ_ATTRIBUTES, WRITE_ATTRIBUTES, DELETE, SYNCHRONIZE = 0x80, 0x100, 0x10000, 0x100000
GENERIC_READ, GENERIC_WRITE, APPEND_DATA = 0x120089, 0x120116, 0x4
"""FILE_GENERIC_READ and FILE_GENERIC_WRITE, written out: the native calls do not map the generic bits for every file system."""
SHARE_ALL, SHARE_DELETE, LIST_FOLDER = 0x7, 0x4, 0x1
FILE_OPEN, FILE_CREATE, FILE_OPEN_IF, FILE_OVERWRITE, FILE_OVERWRITE_IF = 1, 2, 3, 4, 5
DIRECTORY_FILE, SYNCHRONOUS, NON_DIRECTORY_FILE, OPEN_REPARSE_POINT = 0x1, 0x20, 0x40, 0x200000
OPEN_FOR_BACKUP = 0x4000
ATTRIBUTE_READONLY, ATTRIBUTE_DIRECTORY, ATTRIBUTE_NORMAL, ATTRIBUTE_REPARSE = 0x1, 0x10, 0x80, 0x400
RENAME, LINK, DISPOSITION, DISPOSITION_EX, RENAME_EX = 10, 11, 13, 64, 65
_CASE_INSENSITIVE = 0x40
_STATUS = {
    0xC0000034: errno.ENOENT, 0xC000003A: errno.ENOENT, 0xC000000F: errno.ENOENT, 0xC0000056: errno.ENOENT,
    0xC0000035: errno.EEXIST, 0xC0000022: errno.EACCES, 0xC0000121: errno.EACCES, 0xC0000103: errno.ENOTDIR,
    0xC0000024: errno.ENOTDIR, 0xC00000BA: errno.EISDIR, 0xC0000101: errno.ENOTEMPTY, 0xC0000033: errno.EINVAL,
    0xC000000D: errno.EINVAL, 0xC000003B: errno.EINVAL, 0xC0000043: errno.EBUSY, 0xC000007F: errno.ENOSPC,
    0xC00000D4: errno.EXDEV, 0xC0000106: errno.ENAMETOOLONG, 0xC0000003: errno.ENOSYS, 0xC0000002: errno.ENOSYS,
    0xC0000004: errno.ENOSYS, 0xC00000BB: errno.EOPNOTSUPP, 0xC0000061: errno.EPERM, 0xC0000265: errno.EMLINK,
    0xC00000A2: errno.EROFS, 0xC000009A: errno.ENOMEM, 0xC0000008: errno.EBADF, 0xC0000275: errno.EINVAL,
}  # fmt: skip
"""NTSTATUS values, and the errno for which the rest of the program has a sentence."""
_LAST_ERRORS = {
    1: errno.ENOSYS, 2: errno.ENOENT, 3: errno.ENOENT, 5: errno.EACCES, 6: errno.EBADF, 15: errno.ENOENT, 17: errno.EXDEV,
    19: errno.EROFS, 21: errno.EIO, 32: errno.EBUSY, 33: errno.EAGAIN, 50: errno.EOPNOTSUPP, 53: errno.ENOENT,
    67: errno.ENOENT, 80: errno.EEXIST, 87: errno.EINVAL, 109: errno.EPIPE, 112: errno.ENOSPC, 123: errno.EINVAL,
    145: errno.ENOTEMPTY, 161: errno.ENOENT, 183: errno.EEXIST, 206: errno.ENAMETOOLONG, 231: errno.EAGAIN,
    232: errno.EPIPE, 233: errno.EPIPE, 267: errno.ENOTDIR, 1314: errno.EPERM, 4390: errno.EINVAL,
}  # fmt: skip
INVALID_HANDLE = ctypes.c_void_p(-1).value


class UnicodeString(ctypes.Structure):
    _fields_ = [("length", wintypes.USHORT), ("most", wintypes.USHORT), ("buffer", ctypes.c_void_p)]


class ObjectAttributes(ctypes.Structure):
    _fields_ = [
        ("size", wintypes.ULONG), ("root", wintypes.HANDLE), ("name", ctypes.POINTER(UnicodeString)),
        ("attributes", wintypes.ULONG), ("security", ctypes.c_void_p), ("quality", ctypes.c_void_p),
    ]  # fmt: skip


class IoStatus(ctypes.Structure):
    _fields_ = [("status", ctypes.c_void_p), ("information", ctypes.c_void_p)]


class Overlapped(ctypes.Structure):
    _fields_ = [
        ("internal", ctypes.c_void_p), ("internal_high", ctypes.c_void_p), ("offset", wintypes.DWORD),
        ("offset_high", wintypes.DWORD), ("event", wintypes.HANDLE),
    ]  # fmt: skip


class MemoryCounters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS; `peak` is the largest working set."""

    _fields_ = [
        ("size", wintypes.DWORD), ("faults", wintypes.DWORD), ("peak", ctypes.c_size_t), ("now", ctypes.c_size_t),
        ("more", ctypes.c_size_t * 6),
    ]  # fmt: skip


@cache
def kernel32() -> Any:
    """kernel32; handles are passed as integers, so each call names its arguments' types."""
    library = load("kernel32")
    handle, dword, pointer, text, flag = (
        wintypes.HANDLE, wintypes.DWORD, ctypes.c_void_p, wintypes.LPCWSTR, wintypes.BOOL,
    )  # fmt: skip
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "CreateFileW": (handle, [text, dword, dword, pointer, dword, dword, handle]),
        "CloseHandle": (flag, [handle]),
        "ReadFile": (flag, [handle, pointer, dword, pointer, pointer]),
        "WriteFile": (flag, [handle, pointer, dword, pointer, pointer]),
        "SetFilePointerEx": (flag, [handle, ctypes.c_int64, pointer, dword]),
        "GetFileInformationByHandleEx": (flag, [handle, ctypes.c_int, pointer, dword]),
        "SetFileInformationByHandle": (flag, [handle, ctypes.c_int, pointer, dword]),
        "GetFinalPathNameByHandleW": (dword, [handle, pointer, dword, dword]),
        "SetFileTime": (flag, [handle, pointer, pointer, pointer]),
        "DeviceIoControl": (flag, [handle, dword, pointer, dword, pointer, dword, pointer, pointer]),
        "LockFileEx": (flag, [handle, dword, dword, dword, dword, pointer]),
        "UnlockFileEx": (flag, [handle, dword, dword, dword, pointer]),
        "FlushFileBuffers": (flag, [handle]),
        "GetDiskFreeSpaceExW": (flag, [text, pointer, pointer, pointer]),
        "OpenProcess": (handle, [dword, flag, dword]),
        "GetCurrentProcess": (handle, []),
        "GetProcessTimes": (flag, [handle, pointer, pointer, pointer, pointer]),
        "GetExitCodeProcess": (flag, [handle, pointer]),
        "QueryFullProcessImageNameW": (flag, [handle, dword, pointer, pointer]),
        "GetNamedPipeClientProcessId": (flag, [handle, pointer]),
        "GetNamedPipeServerProcessId": (flag, [handle, pointer]),
        "IsProcessInJob": (flag, [handle, handle, pointer]),
        "LocalFree": (pointer, [pointer]),
        "CreateDirectoryW": (flag, [text, pointer]),
        "CreateJobObjectW": (handle, [pointer, text]),
        "SetInformationJobObject": (flag, [handle, ctypes.c_int, pointer, dword]),
        "QueryInformationJobObject": (flag, [handle, ctypes.c_int, pointer, dword, pointer]),
        "AssignProcessToJobObject": (flag, [handle, handle]),
        "TerminateJobObject": (flag, [handle, wintypes.UINT]),
        "K32GetProcessMemoryInfo": (flag, [handle, pointer, dword]),
        "K32EnumProcesses": (flag, [pointer, dword, pointer]),
    }  # fmt: skip
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@cache
def ntdll() -> Any:
    """ntdll, whose calls open a name relative to an open folder."""
    library = load("ntdll")
    pointer, ulong = ctypes.c_void_p, wintypes.ULONG
    library.NtCreateFile.argtypes = [
        pointer, ulong, pointer, pointer, pointer, ulong, ulong, ulong, ulong, pointer, ulong,
    ]  # fmt: skip
    library.NtSetInformationFile.argtypes = [wintypes.HANDLE, pointer, pointer, ulong, ctypes.c_int]
    library.NtQueryInformationProcess.argtypes = [wintypes.HANDLE, ctypes.c_int, pointer, ulong, pointer]
    library.NtResumeProcess.argtypes = [wintypes.HANDLE]
    library.NtQuerySystemInformation.argtypes = [ctypes.c_int, pointer, ulong, pointer]
    for name in (
        "NtCreateFile",
        "NtSetInformationFile",
        "NtQueryInformationProcess",
        "NtResumeProcess",
        "NtQuerySystemInformation",
    ):
        getattr(library, name).restype = ulong
    return library


def load(name: str) -> Any:
    """A library of Windows."""
    loader: Any = getattr(ctypes, "WinDLL")  # noqa: B009  # exists on Windows alone
    return loader(name, use_last_error=True)


@cache
def crt() -> Any:
    """The C runtime's descriptors (the module msvcrt, which other systems lack)."""
    return import_module("msvcrt")


def handle_of(fd: int) -> int:
    """The handle behind a descriptor. Raises OSError for one that is not open."""
    found: int = crt().get_osfhandle(fd)
    return found


def failure(number: int, name: object = None) -> OSError:
    """The OSError of an errno."""
    return OSError(number, os.strerror(number), name) if name is not None else OSError(number, os.strerror(number))


def status_failure(status: int, name: object = None) -> OSError:
    """The OSError of an NTSTATUS."""
    return failure(_STATUS.get(status & 0xFFFFFFFF, errno.EIO), name)


def last_failure(name: object = None) -> OSError:
    """The OSError of the thread's last error."""
    number: int = getattr(ctypes, "get_last_error")()  # noqa: B009  # exists on Windows alone
    return failure(_LAST_ERRORS.get(number, errno.EIO), name)


def close(handle: int) -> None:
    kernel32().CloseHandle(handle)


def create(root: int | None, name: str, access: int, how: int, options: int, share: int = SHARE_ALL) -> int:
    """NtCreateFile: a handle of `name`, relative to the open folder `root`. Raises OSError."""
    buffer = ctypes.create_unicode_buffer(name)
    size = len(name.encode("utf-16-le", "surrogatepass"))
    text = UnicodeString(size, size, ctypes.cast(buffer, ctypes.c_void_p))
    about = ObjectAttributes(ctypes.sizeof(ObjectAttributes), root, ctypes.pointer(text), _CASE_INSENSITIVE, None, None)
    found, status = wintypes.HANDLE(), IoStatus()
    done = ntdll().NtCreateFile(
        ctypes.byref(found), access | SYNCHRONIZE, ctypes.byref(about), ctypes.byref(status), None,
        ATTRIBUTE_NORMAL, share, how, options | SYNCHRONOUS | OPEN_FOR_BACKUP, None, 0,
    )  # fmt: skip
    if done:
        raise status_failure(done, name)
    return int(found.value or 0)


@contextmanager
def with_write_attributes(handle: int) -> Iterator[int]:
    """The same file by a handle that may change its attributes; one that was opened for writing may already."""
    about = BasicInfo()
    is_enough = kernel32().SetFileInformationByHandle(handle, 0, ctypes.byref(about), ctypes.sizeof(about))
    if is_enough:
        yield handle
        return
    again = create(handle, "", WRITE_ATTRIBUTES, FILE_OPEN, OPEN_REPARSE_POINT)
    try:
        yield again
    finally:
        close(again)


@contextmanager
def pinned(fd: int) -> Iterator[str]:
    """The path of an open folder, which neither it nor a folder above can be renamed away from meanwhile."""
    held = create(
        handle_of(fd), "", READ_ATTRIBUTES | LIST_FOLDER, FILE_OPEN, DIRECTORY_FILE, share=SHARE_ALL & ~SHARE_DELETE
    )
    try:
        yield final_path(held)
    finally:
        close(held)


def set_information(handle: int, what: int, value: Any) -> int:
    """NtSetInformationFile; the NTSTATUS."""
    status = IoStatus()
    done: int = ntdll().NtSetInformationFile(
        handle, ctypes.byref(status), ctypes.byref(value), ctypes.sizeof(value), what
    )
    return done


def with_target(folder: int, name: str, flags: int) -> Any:
    """FILE_RENAME_INFORMATION or FILE_LINK_INFORMATION: a name in an open folder."""
    text = name.encode("utf-16-le", "surrogatepass")

    class Target(ctypes.Structure):
        _fields_ = [
            ("flags", wintypes.ULONG), ("root", wintypes.HANDLE), ("length", wintypes.ULONG),
            ("text", ctypes.c_byte * (len(text) + 2)),
        ]  # fmt: skip

    value = Target(flags, folder, len(text))
    ctypes.memmove(ctypes.byref(value, Target.text.offset), text, len(text))
    return value


def final_path(handle: int) -> str:
    """The path of an open file as Windows has it, with slashes and without its `\\\\?\\` prefix. Raises OSError."""
    size = 1024
    while True:
        buffer = ctypes.create_unicode_buffer(size)
        needed = kernel32().GetFinalPathNameByHandleW(handle, buffer, size, 0)
        if needed == 0:
            raise last_failure()
        if needed < size:
            return plain(buffer.value)
        size = needed + 1


def plain(path: str) -> str:
    """A path with slashes, without the prefix of long paths."""
    if path.startswith("\\\\?\\UNC\\"):
        path = "\\\\" + path[8:]
    elif path.startswith("\\\\?\\"):
        path = path[4:]
    return path.replace("\\", "/")


def native(path: str) -> str:
    """A path for the Win32 calls; a long one gets the prefix that lifts their limit of 260 characters."""
    if len(path) < 240 or path.startswith("\\\\"):
        return path
    whole = os.path.abspath(path)  # noqa: PTH100  # pathlib is slow to import
    return "\\\\?\\" + whole if whole[1:3] == ":\\" else whole


_POSIX_DELETE, _POSIX_RENAME, _REPLACE = 0x1 | 0x2 | 0x10, 0x2, 0x1
"""DELETE, POSIX_SEMANTICS and IGNORE_READONLY_ATTRIBUTE; POSIX_SEMANTICS and REPLACE_IF_EXISTS of a rename."""


def remove(handle: int) -> None:
    """Remove the name of an open file or folder: at once where Windows can (10 and later), else when its last handle closes."""
    if set_information(handle, DISPOSITION_EX, wintypes.ULONG(_POSIX_DELETE)) == 0:
        return
    done = set_information(handle, DISPOSITION, wintypes.BOOLEAN(1))
    if done:
        raise status_failure(done)


def rename(handle: int, folder: int, name: str, *, replaces: bool) -> None:
    """Rename an open file or folder into an open folder, in one step."""
    if (
        set_information(handle, RENAME_EX, with_target(folder, name, _POSIX_RENAME | (_REPLACE if replaces else 0)))
        == 0
    ):
        return
    done = set_information(handle, RENAME, with_target(folder, name, _REPLACE if replaces else 0))
    if done:
        raise status_failure(done, name)


def read_at(handle: int, count: int, offset: int) -> bytes:
    """Read without moving the file's position."""
    buffer, done, before = ctypes.create_string_buffer(count), wintypes.DWORD(), ctypes.c_int64()
    kernel32().SetFilePointerEx(handle, 0, ctypes.byref(before), 1)
    at = Overlapped(offset=offset & 0xFFFFFFFF, offset_high=offset >> 32)
    is_read = kernel32().ReadFile(handle, buffer, count, ctypes.byref(done), ctypes.byref(at))
    error = None if is_read or getattr(ctypes, "get_last_error")() == _END_OF_FILE else last_failure()  # noqa: B009
    kernel32().SetFilePointerEx(handle, before.value, None, 0)
    if error is not None:
        raise error
    return buffer.raw[: done.value]


_END_OF_FILE = 38


def write_at(handle: int, data: bytes, offset: int) -> int:
    """Write without moving the file's position."""
    done, before = wintypes.DWORD(), ctypes.c_int64()
    kernel32().SetFilePointerEx(handle, 0, ctypes.byref(before), 1)
    at = Overlapped(offset=offset & 0xFFFFFFFF, offset_high=offset >> 32)
    error = (
        None if kernel32().WriteFile(handle, data, len(data), ctypes.byref(done), ctypes.byref(at)) else last_failure()
    )
    kernel32().SetFilePointerEx(handle, before.value, None, 0)
    if error is not None:
        raise error
    return int(done.value)


class BasicInfo(ctypes.Structure):
    """FILE_BASIC_INFO: the times in units of 100 ns since 1601, and the attributes."""

    _fields_ = [
        ("created", ctypes.c_int64), ("accessed", ctypes.c_int64), ("modified", ctypes.c_int64), ("changed", ctypes.c_int64),
        ("attributes", wintypes.DWORD),
    ]  # fmt: skip


def basic_info(handle: int) -> BasicInfo:
    found = BasicInfo()
    if not kernel32().GetFileInformationByHandleEx(handle, 0, ctypes.byref(found), ctypes.sizeof(found)):
        raise last_failure()
    return found


def set_read_only(handle: int, is_read_only: bool) -> None:
    """Set or clear the attribute. A time of 0 leaves that time as it is."""
    now = basic_info(handle).attributes
    wanted = (now | ATTRIBUTE_READONLY) if is_read_only else (now & ~ATTRIBUTE_READONLY) or ATTRIBUTE_NORMAL
    value = BasicInfo(attributes=wanted)
    if wanted != now and not kernel32().SetFileInformationByHandle(
        handle, 0, ctypes.byref(value), ctypes.sizeof(value)
    ):
        raise last_failure()


_EPOCH_TICKS = 116_444_736_000_000_000


def set_times(handle: int, ns: tuple[int, int] | None) -> None:
    """Set when a file was read and modified; now, without times."""
    import time

    read, modified = ns or (time.time_ns(), time.time_ns())
    value = BasicInfo(accessed=read // 100 + _EPOCH_TICKS, modified=modified // 100 + _EPOCH_TICKS)
    if not kernel32().SetFileInformationByHandle(handle, 0, ctypes.byref(value), ctypes.sizeof(value)):
        raise last_failure()
