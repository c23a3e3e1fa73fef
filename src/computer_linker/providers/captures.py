"""Captures that are given as files: a bounded private folder below the state."""

import os
from pathlib import Path
from typing import Self

from computer_linker.model.ids import new_ulid
from computer_linker.services import Services

MAX_FILES = 100
MAX_BYTES = 200_000_000


class Captures:
    """A bounded folder of private files; the oldest go first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home / "captures")

    def keep(self, data: bytes, extension: str) -> Path:
        """Store one capture; blocking."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / f"{new_ulid()}.{extension}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        self._forget_oldest()
        return path

    def _forget_oldest(self) -> None:
        # Names are ULIDs, so sorting by name is sorting by age.
        kept = sorted((path for path in self._folder.iterdir() if path.is_file()), reverse=True)
        room = MAX_BYTES
        for number, path in enumerate(kept):
            room -= path.stat().st_size
            if number and (number >= MAX_FILES or room < 0):
                path.unlink(missing_ok=True)
