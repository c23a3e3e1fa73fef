"""A job object: Windows ends all processes in it when its last handle is closed."""

import ctypes
from ctypes import wintypes
from typing import Any

from computer_linker.computer.local.windows.api import kernel32, ntdll

_BASIC_ACCOUNTING, _UI_RESTRICTIONS, _EXTENDED_LIMITS = 1, 4, 9
_ACTIVE_PROCESSES, _DIE_ON_ERROR, _KILL_ON_CLOSE = 0x8, 0x400, 0x2000
_NO_DESKTOP = 0xFF
"""Neither windows of others, the clipboard, the display's settings, another desktop, nor the end of the session."""
MAX_PROCESSES = 2048


class _BasicLimits(ctypes.Structure):
    _fields_ = [
        ("process_time", ctypes.c_int64), ("job_time", ctypes.c_int64), ("flags", wintypes.DWORD),
        ("least_memory", ctypes.c_size_t), ("most_memory", ctypes.c_size_t), ("processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t), ("priority", wintypes.DWORD), ("scheduling", wintypes.DWORD),
    ]  # fmt: skip


class _ExtendedLimits(ctypes.Structure):
    _fields_ = [
        ("basic", _BasicLimits), ("io", ctypes.c_uint64 * 6), ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t), ("process_peak", ctypes.c_size_t), ("job_peak", ctypes.c_size_t),
    ]  # fmt: skip


class _Accounting(ctypes.Structure):
    _fields_ = [
        ("user_time", ctypes.c_int64), ("kernel_time", ctypes.c_int64), ("period_user", ctypes.c_int64),
        ("period_kernel", ctypes.c_int64), ("faults", wintypes.DWORD), ("total", wintypes.DWORD),
        ("active", wintypes.DWORD), ("ended", wintypes.DWORD),
    ]  # fmt: skip


class Job:
    """One job. It ends with the service too: the kernel closes the handles of a killed process."""

    def __init__(self) -> None:
        self._handle: Any = kernel32().CreateJobObjectW(None, None)
        if not self._handle:
            raise _last_error("CreateJobObject")
        limits = _ExtendedLimits()
        limits.basic.flags = _KILL_ON_CLOSE | _ACTIVE_PROCESSES | _DIE_ON_ERROR
        limits.basic.processes = MAX_PROCESSES
        if not self._set(_EXTENDED_LIMITS, limits):
            error = _last_error("SetInformationJobObject")
            self.close()
            raise error
        # Where Windows refuses this (a process without a desktop), the command has no desktop to reach either.
        self._set(_UI_RESTRICTIONS, wintypes.DWORD(_NO_DESKTOP))

    def take(self, process: int) -> None:
        """Assign a process, before it runs."""
        if not kernel32().AssignProcessToJobObject(self._handle, process):
            raise _last_error("AssignProcessToJobObject")

    @staticmethod
    def resume(process: int) -> None:
        """Resume a process that was created suspended."""
        ntdll().NtResumeProcess(process)

    def end(self) -> None:
        """End everything in it, at once."""
        if self._handle:
            kernel32().TerminateJobObject(self._handle, 128 + 9)

    def use(self) -> tuple[int, float]:
        """The number of processes in it, and the CPU seconds they have used."""
        told = _Accounting()
        kernel32().QueryInformationJobObject(
            self._handle, _BASIC_ACCOUNTING, ctypes.byref(told), ctypes.sizeof(told), None
        )
        return told.active, (told.user_time + told.kernel_time) / 1e7

    def close(self) -> None:
        """Close the handle, which ends what still runs in it."""
        handle, self._handle = self._handle, None
        if handle:
            kernel32().CloseHandle(handle)

    def _set(self, what: int, value: Any) -> bool:
        done = kernel32().SetInformationJobObject(self._handle, what, ctypes.byref(value), ctypes.sizeof(value))
        return bool(done)


def _last_error(what: str) -> OSError:
    number: int = getattr(ctypes, "get_last_error")()  # noqa: B009  # exists on Windows alone
    return OSError(number, f"{what} failed")
