"""Steps: folders below a root, opened name by name without following links."""

import os

from computer_linker.providers.sandbox.judge import Parts

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Steps:
    """Opens folders below a root. The last folder above is kept open: its neighbours are asked for next."""

    def __init__(self, root_fd: int) -> None:
        self._root = root_fd
        self._above: Parts | None = None
        self._fd = -1

    def open(self, parts: Parts) -> int:
        """Open one for reading. Raises OSError when it is not there, or is no folder."""
        if not parts:
            return os.open(".", _FOLDER, dir_fd=self._root)
        if self._above != parts[:-1]:
            self.close()
            self._fd = open_below(self._root, parts[:-1])
            self._above = parts[:-1]
        return os.open(parts[-1], _FOLDER, dir_fd=self._fd)

    def close(self) -> None:
        if self._above is not None:
            self._above = None
            os.close(self._fd)


def open_below(root_fd: int, parts: Parts) -> int:
    """Open a folder below the root for reading, reached name by name without following links."""
    # Not by openat2: that call of ours keeps the interpreter's lock, and a slow disk would stall every other thread.
    fd = os.open(".", _FOLDER, dir_fd=root_fd)
    for name in parts:
        above = fd
        try:
            fd = os.open(name, _FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return fd
