"""Processes on Windows: each in a job object, created suspended, so that nothing of it runs before its gate opens.

Tested under wine; on Windows itself unproven. There is no terminal (pty) here, and no held folder to start in; input is written
from the event loop, so more of it than a pipe holds waits there for the program.
"""

import asyncio
import ctypes
import os
import subprocess
from collections.abc import Callable
from ctypes import wintypes
from typing import IO, Any

from computer_linker.computer.ending import Ending
from computer_linker.computer.facets.processes import Child, Ended, Launch, PtySize, SignalName, Usage
from computer_linker.computer.local.windows.api import kernel32, ntdll
from computer_linker.errors import ExecutionFailed, UnsupportedPlatform

_SUSPENDED, _NEW_GROUP, _NO_WINDOW = 0x4, 0x200, 0x08000000
_BREAK = 1


class WindowsProcesses:
    """Starts processes, each in its own job."""

    def __init__(self) -> None:
        self._children: set[WindowsChild] = set()

    async def spawn(self, launch: Launch) -> Child:
        """Start a process; it is suspended until `go()`."""
        if launch.pty is not None:
            raise UnsupportedPlatform("There are no terminals for commands on Windows yet.")
        if launch.cwd_fd is not None:
            raise UnsupportedPlatform("Commands on Windows cannot be started in a held folder yet.")
        child = WindowsChild(launch, self._children.discard)
        self._children.add(child)
        return child

    async def aclose(self) -> None:
        """End every process that was started here."""
        for child in list(self._children):
            child.kill()


class WindowsChild(Ending):
    """One process and its job."""

    def __init__(self, launch: Launch, forget: Callable[["WindowsChild"], None]) -> None:
        super().__init__()
        self._forget = forget
        self._loop = asyncio.get_running_loop()
        self._job = Job()
        try:
            self._process = _suspended(launch)
        except OSError as error:
            self._job.close()
            raise ExecutionFailed(f"The program could not be started: {error.strerror}.") from error
        self._handle: int = self._process._handle  # type: ignore[attr-defined]  # Windows' Popen alone has it
        self._job.take(self._handle)
        self.pid = self._process.pid
        self.stdin = None if self._process.stdin is None else _kept(self._process.stdin)
        self.stdout = _kept(self._process.stdout)
        self.stderr: int | None = _kept(self._process.stderr)
        waiting = self._loop.run_in_executor(None, self._process.wait)
        waiting.add_done_callback(lambda done: self._reaped(done.result()))

    def go(self) -> None:
        if self.ended is None:
            self._job.resume(self._handle)

    def signal(self, name: SignalName) -> None:
        """Send Ctrl-Break to the group for a gentle signal; any other signal ends the job."""
        if self.ended is not None:
            return
        if name == "kill":
            self.kill()
        else:
            self._process.send_signal(_BREAK)

    def kill(self) -> None:
        if self.ended is None:
            self._job.end()

    def usage(self) -> Usage | None:
        if self.ended is not None:
            return None
        count, seconds = self._job.use()
        return Usage(pids=count, cpu_s=seconds, memory_bytes=0, ports=())

    def resize(self, size: PtySize) -> None:
        """No effect: there is no terminal."""

    def _reaped(self, code: int) -> None:
        # Processes that the command left running end with it.
        self._job.end()
        self._job.close()
        self._forget(self)
        self.has_ended(Ended(code & 0xFFFFFFFF))


def _suspended(launch: Launch) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        list(launch.argv),
        env=launch.env,
        stdin=subprocess.PIPE if launch.stdin == "pipe" else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        creationflags=_SUSPENDED | _NEW_GROUP | _NO_WINDOW,
    )


def _kept(stream: IO[bytes] | Any) -> int:
    """The descriptor, detached from its file object: the caller closes it."""
    fd = os.dup(stream.fileno())
    stream.close()
    return fd


# A job object: Windows ends all processes in it when its last handle is closed.

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
