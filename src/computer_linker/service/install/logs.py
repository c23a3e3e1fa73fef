"""The log of the service: the last lines, and those that come."""

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from computer_linker import home as places

_LOOK_S = 0.3
_MAX_LINE = 8192


def last_lines(home: Path, count: int) -> list[str]:
    """The newest lines, the oldest of them first."""
    kept: deque[str] = deque(maxlen=count)
    for name in (f"{places.LOG_NAME}.1", places.LOG_NAME):
        try:
            with (home / name).open(encoding="utf-8", errors="replace") as file:
                kept.extend(line.rstrip("\n")[:_MAX_LINE] for line in file)
        except FileNotFoundError:
            continue
    return list(kept)


def following(home: Path) -> Iterator[str]:
    """Every line from now on, until the caller has enough; a new file in the place of the old one is followed too."""
    path = home / places.LOG_NAME
    at = path.stat().st_size if path.exists() else 0
    known = path.stat().st_ino if path.exists() else None
    while True:
        if path.exists():
            found = path.stat()
            if found.st_ino != known or found.st_size < at:
                at, known = 0, found.st_ino
            with path.open(encoding="utf-8", errors="replace") as file:
                file.seek(at)
                for line in file:
                    if not line.endswith("\n"):
                        break
                    at += len(line.encode("utf-8", "replace"))
                    yield line.rstrip("\n")
        time.sleep(_LOOK_S)
