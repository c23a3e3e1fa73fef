"""The standard streams of a child: pipes, or a pty."""

import contextlib
import fcntl
import os
import struct
import termios

from computer_linker.computer.facets.processes import Launch, PtySize

_F_SETPIPE_SZ = 1031
_PIPE_BYTES = 1 << 20


class Streams:
    """Both ends of a child's standard streams."""

    def __init__(self) -> None:
        self.theirs: list[int] = []
        self.stdio: tuple[int, int, int] = (0, 1, 2)
        self.stdin: int | None = None
        self.stdout = -1
        self.stderr: int | None = None

    @classmethod
    def open(cls, launch: Launch) -> "Streams":
        streams = cls()
        try:
            streams._pty(launch.pty) if launch.pty is not None else streams._pipes(launch)
        except BaseException:
            streams.close_theirs()
            streams.close_ours()
            raise
        return streams

    def _pty(self, size: PtySize) -> None:
        master, slave = os.openpty()
        self.theirs, self.stdio = [slave], (0, 0, 0)
        self.stdout = master
        self.stdin = fcntl.fcntl(master, fcntl.F_DUPFD_CLOEXEC, 3)
        os.set_blocking(master, False)
        set_size(master, size)

    def _pipes(self, launch: Launch) -> None:
        if launch.stdin_fd is not None:
            read = fcntl.fcntl(launch.stdin_fd, fcntl.F_DUPFD_CLOEXEC, 3)
        elif launch.stdin == "pipe":
            read, self.stdin = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(self.stdin, False)
        else:
            read = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self.theirs.append(read)
        self.stdout, write = os.pipe2(os.O_CLOEXEC)
        self.theirs.append(write)
        self.stderr, write = os.pipe2(os.O_CLOEXEC)
        self.theirs.append(write)
        os.set_blocking(self.stdout, False)
        os.set_blocking(self.stderr, False)

    def widen(self) -> None:
        """Enlarge the pipe, for fewer wakeups with much output."""
        widen_pipe(self.stdout)

    def close_theirs(self) -> None:
        theirs, self.theirs = self.theirs, []
        for fd in theirs:
            os.close(fd)

    def close_ours(self) -> None:
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd is not None and fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)


def set_size(fd: int, size: PtySize) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))


def widen_pipe(fd: int) -> None:
    """Let a pipe hold 1 MiB; it stays as it is when the user has too many pipes."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)
