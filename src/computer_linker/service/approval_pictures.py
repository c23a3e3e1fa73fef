"""Pictures of what waits for an answer, as private files that a person can open; they go when it is answered."""

import os
from collections.abc import Sequence
from pathlib import Path

from computer_linker.policy.confirm import Asked


class Pictures:
    """A folder of the state folder. It holds pictures only of what waits now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, waiting: Sequence[Asked]) -> dict[str, str]:
        """Where the picture of each waiting request lies, by its id; blocking. What no longer waits is taken away."""
        wanted = {f"{asked.id}.png": asked for asked in waiting if asked.picture is not None}
        if wanted:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        there = {path.name for path in self._folder.iterdir()} if self._folder.is_dir() else set()
        for name in there - wanted.keys():
            (self._folder / name).unlink(missing_ok=True)
        for name in wanted.keys() - there:
            self._write(name, wanted[name].picture or b"")
        return {asked.id: os.fspath(self._folder / name) for name, asked in wanted.items()}

    def _write(self, name: str, data: bytes) -> None:
        # Under another name first: whoever lists the folder must never open half a picture.
        fresh = self._folder / f".{name}"
        fresh.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
            file.write(data)
        fresh.replace(self._folder / name)
