"""Processes by id, on Windows."""

import ctypes
from ctypes import wintypes
from typing import TYPE_CHECKING, NamedTuple

from computer_linker.system.windows import nt

if TYPE_CHECKING:
    import subprocess

_QUERY, _QUERY_ALL, _STILL_RUNS = 0x1000, 0x400, 259
_MOST_ABOVE = 4096
command_jobs: set[int] = set()
"""The handles of the jobs in which commands run. A process stays in its job for life, whatever becomes of its parent."""


class _Basic(ctypes.Structure):
    """PROCESS_BASIC_INFORMATION."""

    _fields_ = [
        ("exit_status", ctypes.c_void_p), ("peb", ctypes.c_void_p), ("affinity", ctypes.c_void_p),
        ("priority", ctypes.c_void_p), ("pid", ctypes.c_void_p), ("parent", ctypes.c_void_p),
    ]  # fmt: skip


class ProcessFacts(NamedTuple):
    """One process as Windows has it; `started` in units of 100 ns since 1601."""

    parent: int
    name: str
    started: int
    is_own: bool
    memory_bytes: int
    cpu_seconds: float


def all_pids() -> list[int]:
    """The ids of all processes, in order."""
    room = 1024
    while True:
        found, used = (wintypes.DWORD * room)(), wintypes.DWORD()
        if not nt.kernel32().K32EnumProcesses(found, ctypes.sizeof(found), ctypes.byref(used)):
            raise nt.last_failure()
        if used.value < ctypes.sizeof(found):
            return sorted(found[: used.value // ctypes.sizeof(wintypes.DWORD)])
        room *= 2


def process(pid: int) -> ProcessFacts | None:
    """What may be asked of a process; None when it has ended or nothing may."""
    from computer_linker.system.windows.security import is_own

    handle = _opened(pid)
    if handle is None:
        return None
    try:
        if not runs(handle):
            return None
        times = _times(handle)
        counters = nt.MemoryCounters(size=ctypes.sizeof(nt.MemoryCounters))
        nt.kernel32().K32GetProcessMemoryInfo(handle, ctypes.byref(counters), ctypes.sizeof(counters))
        return ProcessFacts(
            _parent(handle), process_name(pid), times[0], is_own(pid), int(counters.now), (times[2] + times[3]) / 1e7
        )
    finally:
        nt.close(handle)


def process_name(pid: int | None) -> str:
    """The name of a process's executable; empty when it has ended or may not be asked."""
    from computer_linker.model.geometry import safe_title

    handle = _opened(pid or 0)
    if handle is None:
        return ""
    try:
        buffer, size = ctypes.create_unicode_buffer(1024), wintypes.DWORD(1024)
        if not nt.kernel32().QueryFullProcessImageNameW(handle, 0, buffer, ctypes.byref(size)):
            return ""
        return safe_title(buffer.value.rpartition("\\")[2])
    finally:
        nt.close(handle)


def started_at(pid: int) -> int | None:
    """The start time in units of 100 ns; None when the process has ended. With the pid it identifies one process."""
    handle = _opened(pid)
    if handle is None:
        return None
    try:
        return _started(handle) if runs(handle) else None
    finally:
        nt.close(handle)


def is_running(pid: int, started: int) -> bool:
    """Whether this process runs, and is not another one with its pid."""
    return started_at(pid) == started


def is_in_a_command(pid: int) -> bool:
    """True for a process in the job of a running command, and for one that has ended or cannot be checked."""
    # Wine asks for the wider right; Windows refuses that for an elevated process, and the narrower one is enough.
    handle = _opened(pid, _QUERY_ALL) or _opened(pid)
    if handle is None:
        return True
    try:
        return any(_is_in_job(handle, job) for job in list(command_jobs))
    finally:
        nt.close(handle)


def _is_in_job(process: int, job: int) -> bool:
    found = wintypes.BOOL()
    return not nt.kernel32().IsProcessInJob(process, job, ctypes.byref(found)) or bool(found.value)


def is_below(pid: int, root: int) -> bool:
    """True for a descendant of `root`, and for a process that has ended; a parent must be older than its child."""
    for _ in range(_MOST_ABOVE):
        handle = _opened(pid)
        if handle is None:
            return True
        try:
            started, parent = _started(handle), _parent(handle)
        finally:
            nt.close(handle)
        above = started_at(parent) if parent else None
        if above is None or above > started:
            # The parent has ended; its pid may be another process's by now.
            return False
        if parent == root:
            return True
        pid = parent
    return True


class _TimeOfDay(ctypes.Structure):
    """The beginning of SYSTEM_TIMEOFDAY_INFORMATION, in units of 100 ns."""

    _fields_ = [
        ("boot", ctypes.c_int64), ("now", ctypes.c_int64), ("zone", ctypes.c_int64), ("zone_id", wintypes.ULONG),
        ("unused", wintypes.ULONG), ("boot_bias", ctypes.c_uint64), ("sleep_bias", ctypes.c_uint64),
    ]  # fmt: skip


def boot_id() -> str:
    """What differs after each start of the system: when it was, without what the clock was set by since; empty if unknown."""
    told = _TimeOfDay()
    if nt.ntdll().NtQuerySystemInformation(3, ctypes.byref(told), ctypes.sizeof(told), None):
        return ""
    return f"{told.boot - told.boot_bias:x}"


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a process. Those that it started, where it may start some, are in a job of its own."""
    try:
        process.kill()
    except OSError:
        pass


def _opened(pid: int, right: int = _QUERY) -> int | None:
    handle = nt.kernel32().OpenProcess(right, False, pid) if pid > 0 else None
    return int(handle) if handle else None


def runs(handle: int) -> bool:
    code = wintypes.DWORD()
    return bool(nt.kernel32().GetExitCodeProcess(handle, ctypes.byref(code))) and code.value == _STILL_RUNS


def _started(handle: int) -> int:
    return _times(handle)[0]


def _times(handle: int) -> list[int]:
    """When it started and ended, and its time in the kernel and outside, in units of 100 ns."""
    times = [ctypes.c_uint64() for _ in range(4)]
    nt.kernel32().GetProcessTimes(handle, *(ctypes.byref(time) for time in times))
    return [time.value for time in times]


def _parent(handle: int) -> int:
    found = _Basic()
    nt.ntdll().NtQueryInformationProcess(handle, 0, ctypes.byref(found), ctypes.sizeof(found), None)
    return int(found.parent or 0)
