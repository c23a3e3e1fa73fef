"""Kernel calls that Python lacks: openat2 and renameat2."""

import ctypes
import errno
from functools import lru_cache

from computer_linker.system import os, rename_new

RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2

_SYS_OPENAT2 = 437
_SYS_RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "ppc64le": 357, "s390x": 347}


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@lru_cache(maxsize=1)
def _libc() -> ctypes.PyDLL:
    # PyDLL keeps the GIL: these calls take microseconds, and releasing it costs as much again.
    return ctypes.PyDLL(None, use_errno=True)


@lru_cache(maxsize=1)
def openat2_works() -> bool:
    """True where the kernel has openat2 and nothing (an old container's seccomp filter, say) forbids it."""
    if not hasattr(os, "O_PATH"):
        return False
    try:
        os.close(openat2(os.open("/", os.O_PATH | os.O_CLOEXEC), b".", os.O_PATH, RESOLVE_BENEATH, close=True))
    except OSError:
        return False
    return True


@lru_cache(maxsize=256)
def _how(flags: int, resolve: int) -> "ctypes._CArgObject":
    # The kernel only reads this structure, so one of each kind is enough.
    return ctypes.byref(_How(flags | os.O_CLOEXEC, 0, resolve))


def openat2(folder: int, path: bytes, flags: int, resolve: int, *, close: bool = False) -> int:
    """Open `path` below the descriptor `folder`, resolved by the kernel under `resolve`. Never creates."""
    try:
        for _ in range(64):
            opened: int = _libc().syscall(_SYS_OPENAT2, folder, path, _how(flags, resolve), 24)
            if opened >= 0:
                return opened
            number = ctypes.get_errno()
            # EAGAIN: a rename raced with a `..` of a link, so the kernel could not verify the result.
            if number not in (errno.EAGAIN, errno.EINTR):
                raise OSError(number, os.strerror(number))
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    finally:
        if close:
            os.close(folder)


@lru_cache(maxsize=1)
def _renameat2() -> int | None:
    return _SYS_RENAMEAT2.get(os.uname().machine) if hasattr(os, "O_PATH") else None


def rename(source_folder: int, source: str, folder: int, name: str, *, flags: int) -> None:
    """renameat2 with RENAME_NOREPLACE or RENAME_EXCHANGE. Raises EINVAL or ENOSYS where it is not supported."""
    number = _renameat2()
    if number is None and flags == RENAME_NOREPLACE:
        rename_new(source_folder, source, folder, name)
        return
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    done = _libc().syscall(number, source_folder, os.fsencode(source), folder, os.fsencode(name), flags)
    if done != 0:
        failed = ctypes.get_errno()
        raise OSError(failed, os.strerror(failed))
