"""Symbolic links and junctions: whether an open name is one, and what it leads to. Wine has none, so this is unproven."""

import ctypes
import errno
import os
import struct
from ctypes import wintypes

from computer_linker.system.windows import nt

_GET_REPARSE_POINT = 0x900A8
_SYMLINK, _MOUNT_POINT = 0xA000000C, 0xA0000003
_SURROGATE = 0x20000000
_MOST = 16 * 1024
_RELATIVE = 1


class _TagInfo(ctypes.Structure):
    _fields_ = [("attributes", wintypes.DWORD), ("tag", wintypes.DWORD)]


def is_link(handle: int, found: os.stat_result | None = None) -> bool:
    """Whether an open name stands for another one: a symbolic link, a junction, a mount point."""
    attributes = found.st_file_attributes if found is not None else nt.basic_info(handle).attributes  # type: ignore[attr-defined]
    if not attributes & nt.ATTRIBUTE_REPARSE:
        return False
    about = _TagInfo()
    if not nt.kernel32().GetFileInformationByHandleEx(handle, 9, ctypes.byref(about), ctypes.sizeof(about)):
        return True
    return bool(about.tag & _SURROGATE)


def link_target(handle: int) -> str:
    """The target of an open link, with slashes; an absolute one begins with a slash. Raises EINVAL for what is no link."""
    if not is_link(handle):
        raise nt.failure(errno.EINVAL)
    buffer, size = ctypes.create_string_buffer(_MOST), wintypes.DWORD()
    if not nt.kernel32().DeviceIoControl(handle, _GET_REPARSE_POINT, None, 0, buffer, _MOST, ctypes.byref(size), None):
        raise nt.last_failure()
    tag, _, _, start, length, _, _ = struct.unpack_from("<IHHHHHH", buffer)
    if tag == _SYMLINK:
        flags = struct.unpack_from("<I", buffer, 16)[0]
        return _shown(buffer.raw[20 + start : 20 + start + length], is_relative=bool(flags & _RELATIVE))
    if tag == _MOUNT_POINT:
        return _shown(buffer.raw[16 + start : 16 + start + length], is_relative=False)
    raise nt.failure(errno.ELOOP)


def _shown(raw: bytes, *, is_relative: bool) -> str:
    path = raw.decode("utf-16-le", "surrogatepass").replace("\\", "/")
    return path if is_relative else "/" + path.removeprefix("/??/")
