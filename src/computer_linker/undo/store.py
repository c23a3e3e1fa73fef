"""The private folder of stored files."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from computer_linker.system import os


@dataclass(slots=True)
class KeptFiles:
    """Files and folders under unguessable names, in a folder only this user can enter."""

    path: Path
    folder: int

    @classmethod
    def open(cls, path: Path) -> Self:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW))

    def read(self, name: str, limit: int) -> bytes | None:
        """The content of a stored file, with one byte more than `limit` where it is larger; None when it is gone."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        except OSError:
            return None
        with open(fd, "rb") as file:
            return file.read(limit + 1)

    def drop(self, names: Iterable[str]) -> None:
        """Remove stored files; those already restored are no longer there."""
        for name in names:
            try:
                os.unlink(name, dir_fd=self.folder)
            except FileNotFoundError:
                continue
            except (IsADirectoryError, PermissionError):
                # shutil.rmtree with a descriptor walks without following links.
                shutil.rmtree(name, ignore_errors=True, dir_fd=self.folder)

    def drop_others(self, known: set[str]) -> None:
        """Remove files that no record refers to: their change was never made."""
        self.drop([name for name in os.listdir(self.folder) if name not in known])

    def close(self) -> None:
        os.close(self.folder)


def kept_content(folder: Path, name: str, limit: int) -> bytes | None:
    """What a change replaced, up to `limit` bytes; None for a folder, a link, and what is no longer there."""
    try:
        handle = os.open(folder / "kept" / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            return file.read(limit)
        except IsADirectoryError:
            return None
