"""Starting a service that outlives this program, and relaying a client that cannot be passed on; on Unix."""

import os
import select
from _socket import SHUT_WR, socket


class Detached:
    """A process in a session of its own."""

    def __init__(self, argv: list[str], environment: dict[str, str], log: str) -> None:
        """Start it; what it prints is appended to the file `log`."""
        self._code: int | None = None
        self.pid = os.posix_spawn(
            argv[0],
            argv,
            environment,
            setsid=True,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self._code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if ended else None
        return self._code

    def wait(self) -> None:
        """Wait for its end and reap it."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def relay(link: socket) -> bool:
    """Relay stdin and stdout in both directions; True when the service ended after the client's input did."""
    waiting = [0, link.fileno()]
    while True:
        for fd in select.select(waiting, [], [])[0]:
            data = os.read(fd, 65536)
            if fd != 0:
                if not data:
                    return 0 not in waiting
                write_all(1, data)
            elif data:
                link.sendall(data)
            else:
                link.shutdown(SHUT_WR)
                waiting.remove(0)


def write_all(fd: int, data: bytes) -> None:
    """Write to a client's pipe, also to one that does not block."""
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            select.select([], [fd], [])
