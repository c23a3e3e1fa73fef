"""Processes by the standard library alone, for systems without the Linux launcher: a group of its own, ended together.

Unproven on macOS, where it is meant for: descendants that leave their group are not found, and a killed service does
not take its children along.
"""

import asyncio
import contextlib
import os
import pty
import signal as signals
import subprocess
from collections.abc import Callable

import anyio

from computer_linker.computer.facets.processes import Child, Ended, Launch, PtySize, SignalName, Usage
from computer_linker.errors import ExecutionFailed

_Signals = signals.Signals


class PortableProcesses:
    """Starts a process when its gate opens; there is no waiting child before that."""

    def __init__(self) -> None:
        self._children: set[PortableChild] = set()

    async def spawn(self, launch: Launch) -> Child:
        child = PortableChild(launch, self._children.discard)
        self._children.add(child)
        return child

    async def aclose(self) -> None:
        for child in list(self._children):
            child.kill()


class PortableChild:
    """One process in a session of its own."""

    def __init__(self, launch: Launch, forget: Callable[["PortableChild"], None]) -> None:
        self.pid = 0
        self._launch = launch
        self._forget = forget
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: Ended | None = None
        self._waiters: list[Callable[[Ended], None]] = []
        self._loop = asyncio.get_running_loop()
        self._theirs: list[int] = []
        self.stdin: int | None = None
        self.stderr: int | None = None
        if launch.pty is not None:
            self.stdout, slave = pty.openpty()
            self._theirs = [slave, slave, slave]
            self.stdin = os.dup(self.stdout)
        else:
            read, write = os.pipe() if launch.stdin == "pipe" else (os.open(os.devnull, os.O_RDONLY), -1)
            self.stdin = write if write >= 0 else None
            self.stdout, out = os.pipe()
            self.stderr, err = os.pipe()
            self._theirs = [read, out, err]
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd is not None:
                os.set_blocking(fd, False)

    def go(self) -> None:
        launch = self._launch
        stdin, stdout, stderr = self._theirs
        try:
            self._process = subprocess.Popen(
                list(launch.argv),
                env=launch.env,
                cwd=None if launch.cwd_fd is None else f"/dev/fd/{launch.cwd_fd}",
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=launch.fds,
                start_new_session=True,
            )
        except OSError as error:
            self._has_ended(Ended(127, reason=f"{error.strerror} (exec)"))
            return
        finally:
            for fd in set(self._theirs):
                os.close(fd)
        self.pid = self._process.pid
        waiting = self._loop.run_in_executor(None, self._process.wait)
        waiting.add_done_callback(lambda done: self._reaped(done.result()))

    async def wait(self) -> Ended:
        if self._ended is None:
            done = anyio.Event()
            self._waiters.append(lambda _ended: done.set())
            await done.wait()
        if self._ended is None:
            raise ExecutionFailed("The process was lost.")
        return self._ended

    def when_ended(self, call: Callable[[Ended], None]) -> None:
        if self._ended is not None:
            call(self._ended)
        else:
            self._waiters.append(call)

    def signal(self, name: SignalName) -> None:
        self._send(getattr(signals, f"SIG{name.upper()}"))

    def kill(self) -> None:
        self._send(_Signals.SIGKILL)

    def usage(self) -> Usage | None:
        return None

    def resize(self, size: PtySize) -> None:
        import fcntl
        import struct
        import termios

        if self._launch.pty is not None:
            fcntl.ioctl(self.stdout, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))

    def _send(self, number: _Signals) -> None:
        if self._ended is None and self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _reaped(self, code: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, _Signals.SIGKILL)
        named = _Signals(-code).name if code < 0 else None
        self._has_ended(Ended(code if code >= 0 else 128 - code, named))

    def _has_ended(self, ended: Ended) -> None:
        self._ended = ended
        self._forget(self)
        waiters, self._waiters = self._waiters, []
        for call in waiters:
            call(ended)
