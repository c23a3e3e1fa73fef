"""Processes by the standard library alone, for systems without the Linux launcher: one process group each.

Unproven on macOS, its target: descendants that leave their group are not found, and the children of a killed service
keep running.
"""

import asyncio
import contextlib
import signal as signals
import struct
import subprocess
from collections.abc import Callable

from computer_linker.computer.ending import Ending
from computer_linker.computer.facets.processes import Child, Ended, Launch, PtySize, SignalName, Usage
from computer_linker.system import descriptor_path, os

_Signals = signals.Signals


class PortableProcesses:
    """Starts a process when its gate opens; no child exists before that."""

    def __init__(self) -> None:
        self._children: set[PortableChild] = set()

    async def spawn(self, launch: Launch) -> Child:
        child = PortableChild(launch, self._children.discard)
        self._children.add(child)
        return child

    async def aclose(self) -> None:
        for child in list(self._children):
            child.kill()


class PortableChild(Ending):
    """One process in a session of its own."""

    def __init__(self, launch: Launch, forget: Callable[["PortableChild"], None]) -> None:
        super().__init__()
        self.pid = 0
        self._launch = launch
        self._forget = forget
        self._process: subprocess.Popen[bytes] | None = None
        self._loop = asyncio.get_running_loop()
        # Duplicated, since the caller may close its descriptors before the gate opens.
        self._cwd = None if launch.cwd_fd is None else os.dup(launch.cwd_fd)
        self._theirs: list[int] = []
        self.stdin: int | None = None
        self.stderr: int | None = None
        if launch.pty is not None:
            self.stdout, slave = os.openpty()
            self._theirs = [slave, slave, slave]
            self.stdin = os.dup(self.stdout)
        else:
            if launch.stdin_fd is not None:
                read, write = os.dup(launch.stdin_fd), -1
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
        if self.ended is not None:
            return
        launch = self._launch
        stdin, stdout, stderr = self._theirs
        try:
            self._process = subprocess.Popen(
                list(launch.argv),
                env=launch.env,
                cwd=None if self._cwd is None else _path_of(self._cwd),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            self.has_ended(Ended(127, reason=f"{error.strerror} (exec)"))
            return
        finally:
            self._close_theirs()
        self.pid = self._process.pid
        waiting = self._loop.run_in_executor(None, self._process.wait)
        waiting.add_done_callback(lambda done: self._reaped(done.result()))

    def signal(self, name: SignalName) -> None:
        self._send(getattr(signals, f"SIG{name.upper()}"))

    def kill(self) -> None:
        if self._process is None and self.ended is None:
            self._close_theirs()
            self.has_ended(Ended(128 + _Signals.SIGKILL, "SIGKILL"))
        self._send(_Signals.SIGKILL)

    def usage(self) -> Usage | None:
        return None

    def resize(self, size: PtySize) -> None:
        if self._launch.pty is not None:
            import fcntl
            import termios

            fcntl.ioctl(self.stdout, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))

    def _send(self, number: _Signals) -> None:
        if self.ended is None and self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _close_theirs(self) -> None:
        theirs, self._theirs = set(self._theirs), []
        for fd in (*theirs, *(() if self._cwd is None else (self._cwd,))):
            os.close(fd)
        self._cwd = None

    def _reaped(self, code: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, _Signals.SIGKILL)
        named = _Signals(-code).name if code < 0 else None
        self.has_ended(Ended(code if code >= 0 else 128 - code, named))

    def has_ended(self, ended: Ended) -> None:
        """Notify every waiter."""
        self._forget(self)
        super().has_ended(ended)


def _path_of(folder_fd: int) -> str:
    """A path to a held folder: by F_GETPATH on macOS, elsewhere by the descriptor's /dev/fd name."""
    import fcntl

    if hasattr(fcntl, "F_GETPATH"):
        return descriptor_path(folder_fd)
    return f"/dev/fd/{folder_fd}"
