"""The on-demand service: takes the lock and listens before anything heavy is imported, so that a client can connect at once."""

import fcntl
import os
import sys

from computer_linker import home as places

LOCK_HELD = 75
"""Exit code (EX_TEMPFAIL) when another service has this state folder."""


def main(argv: list[str]) -> int:
    """`serve --socket-only [--idle-exit SECONDS]`: for the stdio shim, not for people."""
    home = places.state_home()
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)  # noqa: PTH103  # no pathlib: start time
        lock = take_lock(home)
        if lock is None:
            return LOCK_HELD
        listener = places.listen(home)
    except OSError as error:
        sys.stderr.write(f"error: the state folder cannot be used: {error.strerror}\n")
        return 1
    from computer_linker.service.run import serve_socket

    idle_exit_s = float(argv[1]) if argv[:1] == ["--idle-exit"] else None
    return serve_socket(home, lock, listener, idle_exit_s)


def take_lock(home: str) -> int | None:
    """A descriptor that holds the state folder's lock; None when another service has it."""
    fd = os.open(os.path.join(home, places.LOCK_NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)  # noqa: PTH118
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd
