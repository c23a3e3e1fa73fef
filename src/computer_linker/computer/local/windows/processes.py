"""Processes on Windows: each in a job object, created suspended, so that nothing of it runs before its gate opens.

Tested under wine; on Windows itself unproven. There is no terminal (pty) here; input is written from the event loop, so more of
it than a pipe holds waits there for the program.
"""

import asyncio
import os
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from typing import IO, Any

from computer_linker.computer.ending import Ending
from computer_linker.computer.facets.processes import (
    Child,
    Ended,
    Launch,
    PtySize,
    SignalName,
    Usage,
)
from computer_linker.computer.local.windows.api import kernel32
from computer_linker.errors import ExecutionFailed, UnsupportedPlatform
from computer_linker.system.windows.jobs import Job
from computer_linker.system.windows.nt import pinned

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
        self._job = Job(launch.limits.processes, launch.limits.memory_bytes)
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
        """Send Ctrl-Break to the group; end the job for `kill`, and where there is no console to send it by."""
        if self.ended is None and (name == "kill" or not kernel32().GenerateConsoleCtrlEvent(_BREAK, self.pid)):
            self.kill()

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
    with nullcontext() if launch.cwd_fd is None else pinned(launch.cwd_fd) as folder:
        return subprocess.Popen(
            list(launch.argv),
            env=launch.env,
            cwd=folder,
            stdin=_input_of(launch),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            creationflags=_SUSPENDED | _NEW_GROUP | _NO_WINDOW,
        )


def _input_of(launch: Launch) -> int:
    if launch.stdin_fd is not None:
        return launch.stdin_fd
    return subprocess.PIPE if launch.stdin == "pipe" else subprocess.DEVNULL


def _kept(stream: IO[bytes] | Any) -> int:
    """The descriptor, detached from its file object: the caller closes it."""
    fd = os.dup(stream.fileno())
    stream.close()
    return fd
