"""Users by their SID, and security descriptors that admit one user alone."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import wintypes
from functools import cache
from typing import Any

from computer_linker.system.windows import nt

_TOKEN_QUERY, _TOKEN_USER, _SDDL_REVISION = 0x8, 1, 1
_SYSTEM = "S-1-5-18"


class Attributes(ctypes.Structure):
    """SECURITY_ATTRIBUTES."""

    _fields_ = [("size", wintypes.DWORD), ("descriptor", ctypes.c_void_p), ("inherit", wintypes.BOOL)]


@cache
def advapi32() -> Any:
    library = nt.load("advapi32")
    handle, dword, pointer, flag = wintypes.HANDLE, wintypes.DWORD, ctypes.c_void_p, wintypes.BOOL
    library.OpenProcessToken.argtypes = [handle, dword, pointer]
    library.GetTokenInformation.argtypes = [handle, ctypes.c_int, pointer, dword, pointer]
    library.ConvertSidToStringSidW.argtypes = [pointer, pointer]
    library.ConvertStringSecurityDescriptorToSecurityDescriptorW.argtypes = [wintypes.LPCWSTR, dword, pointer, pointer]
    for name in (
        "OpenProcessToken", "GetTokenInformation", "ConvertSidToStringSidW",
        "ConvertStringSecurityDescriptorToSecurityDescriptorW",
    ):  # fmt: skip
        getattr(library, name).restype = flag
    return library


@cache
def own_sid() -> str:
    """The SID of this process's user."""
    return _sid_of(nt.kernel32().GetCurrentProcess())


def is_elevated() -> bool:
    """Whether this process has an administrator's rights."""
    return bool(nt.load("shell32").IsUserAnAdmin())


def is_own(pid: int) -> bool:
    """Whether a process is this user's, or the system's own."""
    handle = nt.kernel32().OpenProcess(0x1000, False, pid)
    if not handle:
        return False
    try:
        return _sid_of(handle) in (own_sid(), _SYSTEM)
    finally:
        nt.close(handle)


def _sid_of(process: int) -> str:
    token = wintypes.HANDLE()
    if not advapi32().OpenProcessToken(process, _TOKEN_QUERY, ctypes.byref(token)):
        return ""
    try:
        size = wintypes.DWORD()
        advapi32().GetTokenInformation(token, _TOKEN_USER, None, 0, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value or 256)
        if not advapi32().GetTokenInformation(token, _TOKEN_USER, buffer, len(buffer), ctypes.byref(size)):
            return ""
        return _text(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_void_p)).contents.value)
    finally:
        nt.close(int(token.value or 0))


def _text(sid: int | None) -> str:
    shown = wintypes.LPWSTR()
    if not advapi32().ConvertSidToStringSidW(sid, ctypes.byref(shown)):
        return ""
    try:
        return str(shown.value)
    finally:
        nt.kernel32().LocalFree(shown)


@contextmanager
def for_the_owner(*, inherited: bool = False) -> Iterator[Attributes]:
    """Security attributes that give this user everything and others nothing; `inherited` by what is made in a folder."""
    flags = "OICI" if inherited else ""
    text = f"D:P(A;{flags};GA;;;{own_sid()})(A;{flags};GA;;;SY)"
    descriptor = ctypes.c_void_p()
    if not advapi32().ConvertStringSecurityDescriptorToSecurityDescriptorW(
        text, _SDDL_REVISION, ctypes.byref(descriptor), None
    ):
        raise nt.last_failure()
    try:
        yield Attributes(ctypes.sizeof(Attributes), descriptor, False)
    finally:
        nt.kernel32().LocalFree(descriptor)


def make_private_folders(path: str) -> None:
    """Make a folder that this user alone may open, as all that is made in it, and those above; what is there is not changed."""
    above = os.path.dirname(path)  # noqa: PTH120
    if above and above != path:
        os.makedirs(above, exist_ok=True)  # noqa: PTH103
    with for_the_owner(inherited=True) as attributes:
        if not nt.kernel32().CreateDirectoryW(nt.native(path), ctypes.byref(attributes)):
            failed = nt.last_failure(path)
            if not isinstance(failed, FileExistsError):
                raise failed
