"""The on-demand service: takes the lock and listens before anything heavy is imported, so that a client can connect at once."""

import sys

from computer_linker import home as places
from computer_linker.system import make_private_folders


def main(argv: list[str]) -> int:
    """`serve --socket-only [--idle-exit SECONDS]`: for the stdio shim, not for people."""
    home = places.state_home()
    try:
        make_private_folders(home)
        lock = places.take_lock(home)
        if lock is None:
            return places.LOCK_HELD
        listener = places.listen(home)
    except OSError as error:
        sys.stderr.write(f"error: the state folder cannot be used: {error.strerror}\n")
        return 1
    from computer_linker.serve.run import serve_socket

    idle_exit_s = float(argv[1]) if argv[:1] == ["--idle-exit"] else None
    return serve_socket(home, lock, listener, idle_exit_s)
