"""Reads the service's log: the last lines, then new ones."""

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from computer_linker import home as places

_POLL_S = 0.3
_MAX_LINE = 8192


class Log:
    """Reads on from where it stopped; a new file in the place of the old one is read from its start."""

    def __init__(self, home: Path) -> None:
        self._path = home / places.LOG_NAME
        self._earlier = home / f"{places.LOG_NAME}.1"
        self._at = 0
        self._which: int | None = None
        self._rest = b""

    def last(self, count: int) -> list[str]:
        """The newest lines, the oldest of them first."""
        kept: deque[str] = deque(maxlen=count)
        if self._earlier.exists():
            kept.extend(_text(line) for line in self._earlier.read_bytes().splitlines())
        kept.extend(self.more())
        return list(kept)

    def more(self) -> list[str]:
        """Return the complete lines added since."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return []
        with file:
            found = os.fstat(file.fileno())
            if found.st_ino != self._which or found.st_size < self._at:
                self._at, self._which, self._rest = 0, found.st_ino, b""
            file.seek(self._at)
            data = file.read()
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [_text(line) for line in whole]

    def follow(self) -> Iterator[str]:
        """Yield new lines until the caller stops."""
        while True:
            yield from self.more()
            time.sleep(_POLL_S)


def _text(line: bytes) -> str:
    return line[:_MAX_LINE].decode("utf-8", "replace")
