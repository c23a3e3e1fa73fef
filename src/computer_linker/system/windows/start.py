"""Starting a service that outlives this program, and relaying a client's pipes to it; on Windows."""

import os
import queue
import socket
import subprocess
import threading

_PIECES, _PIECE, _CLOSING_S = 16, 1 << 16, 1.0
_NEW_GROUP, _NO_WINDOW, _OWN_JOB = 0x200, 0x08000000, 0x01000000


class Detached:
    """A process without this program's console, and outside its job where that lets it go."""

    def __init__(self, argv: list[str], environment: dict[str, str], log: str) -> None:
        """Start it; what it prints is appended to the file `log`."""
        with open(log, "ab") as output:  # pathlib is slow to import
            for flags in (_NEW_GROUP | _NO_WINDOW | _OWN_JOB, _NEW_GROUP | _NO_WINDOW):
                try:
                    self._process = subprocess.Popen(
                        argv, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                        creationflags=flags, close_fds=True,
                    )  # fmt: skip
                    break
                except PermissionError:
                    # The job of this program does not let processes leave it.
                    continue
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def wait(self) -> None:
        """Wait for its end."""
        self._process.wait()


def relay(link: socket.socket) -> bool:
    """Relay stdin and stdout in both directions; True when the service ended after the client's input did."""
    has_ended = threading.Event()

    def send() -> None:
        try:
            while data := os.read(0, 65536):
                link.sendall(data)
            has_ended.set()
            link.shutdown(socket.SHUT_WR)
        except OSError:
            return

    threading.Thread(target=send, daemon=True).start()
    while data := link.recv(65536):
        write_all(1, data)
    return has_ended.is_set()


def write_all(fd: int, data: bytes) -> None:
    """Write to a client's pipe."""
    while data:
        data = data[os.write(fd, data) :]


class Output:
    """What a child prints to its two pipes, in the order of its arrival. A thread reads each: Windows cannot wait for two."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._found: queue.Queue[tuple[str, bytes]] = queue.Queue(_PIECES)
        self._open = 2
        self._is_closed = False
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None
            threading.Thread(target=self._read, args=(name, pipe.fileno()), daemon=True).start()

    @property
    def is_open(self) -> bool:
        """False at the end of both."""
        return self._open > 0

    def next(self, within_s: float | None, size: int) -> tuple[str, bytes] | None:
        """The pipe that has something, and some bytes of it, none at its end; None when neither has within the time."""
        try:
            name, piece = self._found.get(timeout=within_s)
        except queue.Empty:
            return None
        self._open -= not piece
        return name, piece

    def close(self) -> None:
        """Let the threads end: the pipes are closed next."""
        self._is_closed = True
        while self._open > 0 and self.next(_CLOSING_S, 0) is not None:
            pass

    def _read(self, name: str, fd: int) -> None:
        piece = b"x"
        while piece:
            try:
                piece = os.read(fd, _PIECE) if not self._is_closed else b""
            except OSError:
                piece = b""
            self._found.put((name, piece))
