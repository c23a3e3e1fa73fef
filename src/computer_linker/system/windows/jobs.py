"""Job objects: processes that Windows bounds and ends together. It ends all of them when the job's last handle is closed."""

import ctypes
import time
from ctypes import wintypes
from typing import Any

from computer_linker.system.windows import nt
from computer_linker.system.windows.processes import command_jobs, runs

_BASIC_ACCOUNTING, _UI_RESTRICTIONS, _EXTENDED_LIMITS = 1, 4, 9
_PROCESS_TIME, _ACTIVE_PROCESSES, _PROCESS_MEMORY, _JOB_MEMORY, _DIE_ON_ERROR, _KILL_ON_CLOSE = (
    0x2, 0x8, 0x100, 0x200, 0x400, 0x2000,
)  # fmt: skip
_SET_QUOTA, _TERMINATE, _QUERY = 0x100, 0x1, 0x1000
_NO_DESKTOP = 0xFF
"""Neither windows of others, the clipboard, the display's settings, another desktop, nor the end of the session."""
MAX_PROCESSES = 2048
_TICKS = 10_000_000


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
    """The job of one command. It ends with the service too: the kernel closes the handles of a killed process."""

    def __init__(self, processes: int | None, memory: int | None) -> None:
        limits = _ExtendedLimits()
        limits.basic.flags = _KILL_ON_CLOSE | _ACTIVE_PROCESSES | _DIE_ON_ERROR
        limits.basic.processes = min(processes or MAX_PROCESSES, MAX_PROCESSES)
        if memory is not None:
            limits.basic.flags |= _JOB_MEMORY
            limits.job_memory = memory
        self._handle: int | None = _made(limits)
        command_jobs.add(self._handle)
        # Where Windows refuses this (a process without a desktop), the command has no desktop to reach either.
        _set(self._handle, _UI_RESTRICTIONS, wintypes.DWORD(_NO_DESKTOP))

    def take(self, process: int) -> None:
        """Assign a process, before it runs."""
        if not nt.kernel32().AssignProcessToJobObject(self._handle, process):
            raise nt.last_failure("AssignProcessToJobObject")

    @staticmethod
    def resume(process: int) -> None:
        """Resume a process that was created suspended."""
        nt.ntdll().NtResumeProcess(process)

    def end(self) -> None:
        """End everything in it, at once."""
        if self._handle:
            nt.kernel32().TerminateJobObject(self._handle, 128 + 9)

    def use(self) -> tuple[int, float]:
        """The number of processes in it, and the CPU seconds they have used."""
        told = _Accounting()
        size = ctypes.sizeof(told)
        nt.kernel32().QueryInformationJobObject(self._handle, _BASIC_ACCOUNTING, ctypes.byref(told), size, None)
        return told.active, (told.user_time + told.kernel_time) / 1e7

    def close(self) -> None:
        """Close the handle, which ends what still runs in it."""
        handle, self._handle = self._handle, None
        if handle:
            command_jobs.discard(handle)
            nt.close(handle)


def limit_this_process(memory: int, seconds: int) -> None:
    """Bound this process: memory in bytes, processor time in seconds, and no further process."""
    limits = _ExtendedLimits()
    limits.basic.flags = _PROCESS_MEMORY | _PROCESS_TIME | _ACTIVE_PROCESSES | _DIE_ON_ERROR
    limits.basic.processes, limits.basic.process_time, limits.process_memory = 1, seconds * _TICKS, memory
    _put(nt.kernel32().GetCurrentProcess(), limits)


def cap_memory(pid: int, size: int) -> None:
    """Bound the memory of another process and of what it starts; nothing happens when it has ended."""
    process = nt.kernel32().OpenProcess(_SET_QUOTA | _TERMINATE | _QUERY, False, pid)
    if not process:
        return
    limits = _ExtendedLimits()
    limits.basic.flags, limits.job_memory = _JOB_MEMORY, size
    try:
        _put(process, limits)
    except OSError:
        if runs(process):
            raise
    finally:
        nt.close(process)


def own_use() -> tuple[int, float]:
    """The most memory in bytes that this process had, and its processor seconds."""
    counters = nt.MemoryCounters(size=ctypes.sizeof(nt.MemoryCounters))
    nt.kernel32().K32GetProcessMemoryInfo(
        nt.kernel32().GetCurrentProcess(), ctypes.byref(counters), ctypes.sizeof(counters)
    )
    return int(counters.peak), time.process_time()


def _put(process: int, limits: _ExtendedLimits) -> None:
    """Put a process into a job of its own, which lasts as long as the process."""
    job = _made(limits)
    try:
        if not nt.kernel32().AssignProcessToJobObject(job, process):
            raise nt.last_failure("AssignProcessToJobObject")
    finally:
        nt.close(job)


def _made(limits: _ExtendedLimits) -> int:
    job = nt.kernel32().CreateJobObjectW(None, None)
    if not job:
        raise nt.last_failure("CreateJobObject")
    if not _set(job, _EXTENDED_LIMITS, limits):
        error = nt.last_failure("SetInformationJobObject")
        nt.close(job)
        raise error
    return int(job)


def _set(job: int, what: int, value: Any) -> bool:
    return bool(nt.kernel32().SetInformationJobObject(job, what, ctypes.byref(value), ctypes.sizeof(value)))
