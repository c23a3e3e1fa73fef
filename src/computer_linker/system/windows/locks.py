"""Locks between processes: one byte far beyond the end of an open file, released by the kernel when its holder ends."""

import ctypes

from computer_linker.system.windows import nt

_EXCLUSIVE, _AT_ONCE = 0x2, 0x1
_FAR = 0x7FFF_FFFF
"""Locks of Windows keep others from reading what they cover, so they cover nothing that is ever written."""


def lock(fd: int) -> None:
    """Wait for the lock of this open file."""
    if not _lock(fd, _EXCLUSIVE):
        raise nt.last_failure()


def try_lock(fd: int) -> bool:
    """Take the lock of this open file; False when another process has it."""
    return _lock(fd, _EXCLUSIVE | _AT_ONCE)


def unlock(fd: int) -> None:
    """Release the lock."""
    at = nt.Overlapped(offset_high=_FAR)
    nt.kernel32().UnlockFileEx(nt.handle_of(fd), 0, 1, 0, ctypes.byref(at))


def _lock(fd: int, how: int) -> bool:
    at = nt.Overlapped(offset_high=_FAR)
    return bool(nt.kernel32().LockFileEx(nt.handle_of(fd), how, 0, 1, 0, ctypes.byref(at)))
