"""What Linux and macOS have in common: the channel, starts, names, and locks, which end with the process that holds them."""

import errno
import os

from computer_linker.system import unix_channel as channel
from computer_linker.system.unix_start import Detached, relay, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import AnyStr

__all__ = [
    "KEPT_VARIABLES", "Detached", "Output", "channel", "end_group", "is_elevated", "is_program_name", "lock",
    "make_private_folders", "program_names", "refused_name", "relay", "rename_new", "slashed", "try_lock", "unlock", "write_all",
]  # fmt: skip
KEPT_VARIABLES: tuple[str, ...] = ()
"""Variables without which programs of this system do not start."""
_SIGKILL = 9


def is_elevated() -> bool:
    """Whether this process is root's."""
    return os.geteuid() == 0


def refused_name(name: str) -> str | None:
    """None: every name is one of a file."""
    return None


def program_names(name: str) -> tuple[str, ...]:
    """The files that a program's name may stand for: the one of that name."""
    return (name,)


def is_program_name(path: str) -> bool:
    """True: whether a file is a program is in its mode."""
    return True


def make_private_folders(path: str) -> None:
    """Make a folder that this user alone may open, and those above it; what is there is not changed."""
    os.makedirs(path, mode=0o700, exist_ok=True)  # noqa: PTH103  # pathlib is slow to import


def slashed(path: "AnyStr") -> "AnyStr":
    """The path as it is: a backslash is a character of a name."""
    return path


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a process that leads its group, with all others of the group."""
    try:
        os.killpg(process.pid, _SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


class Output:
    """What a child prints to its two pipes, in the order of its arrival."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        import selectors

        self._selector = selectors.PollSelector()
        self._ready: list[tuple[selectors.SelectorKey, int]] = []
        for name in ("stdout", "stderr"):
            self._selector.register(getattr(process, name), selectors.EVENT_READ, name)

    @property
    def is_open(self) -> bool:
        """False at the end of both."""
        return bool(self._selector.get_map())

    def next(self, within_s: float | None, size: int) -> tuple[str, bytes] | None:
        """The pipe that has something, and up to `size` bytes of it, none at its end; None when neither has within the time."""
        self._ready = self._ready or self._selector.select(within_s)
        if not self._ready:
            return None
        key, _ = self._ready.pop()
        piece = os.read(key.fd, size)
        if not piece:
            self._selector.unregister(key.fileobj)
        return key.data, piece

    def close(self) -> None:
        self._selector.close()


def rename_new(source_folder: int, source: str, folder: int, name: str) -> None:
    """Not offered: Linux has renameat2, and elsewhere a hard link does it (`portable/files/stage.py`)."""
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def lock(fd: int) -> None:
    """Wait for the lock of this open file."""
    import fcntl

    fcntl.flock(fd, fcntl.LOCK_EX)


def try_lock(fd: int) -> bool:
    """Take the lock of this open file; False when another process has it."""
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(fd: int) -> None:
    """Release the lock."""
    import fcntl

    fcntl.flock(fd, fcntl.LOCK_UN)
