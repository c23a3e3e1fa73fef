"""The evidence of one execution: a private folder in the workspace, created and written through held descriptors only."""

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Self

from computer_linker.errors import LimitExceeded, PathOutOfScope
from computer_linker.model.times import shown_ns
from computer_linker.providers.evidence.bounds import prune

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"[a-z]{1,20}\.(png|json|jsonl)")
MAX_BYTES = 50_000_000
"""The size limit of one execution's evidence."""


class Evidence:
    """One execution's folder, held open. No path above it is resolved again, so it cannot be redirected."""

    def __init__(self, folder: int, where: str) -> None:
        self._folder = folder
        self.where = where
        """The folder's path relative to the workspace."""
        self.files: list[str] = []
        self._size = 0
        self._trace: list[bytes] = []

    @classmethod
    def begin(cls, workspace: int, execution_id: str) -> Self:
        """Create the folder beneath a held workspace; blocking. Raises PathOutOfScope when a link is in its path."""
        day = datetime.now(UTC).strftime("%Y-%m-%d")
        held: list[int] = []
        try:
            above = workspace
            for name in ("artifacts", "desktop", day):
                above = _descend(above, name)
                held.append(above)
            os.mkdir(execution_id, 0o700, dir_fd=above)
            folder = os.open(execution_id, _FOLDER, dir_fd=above)
            prune(held[1], time.time(), keep=execution_id)
        except OSError as error:
            raise _not_creatable(error) from error
        finally:
            for fd in held:
                os.close(fd)
        return cls(folder, f"artifacts/desktop/{day}/{execution_id}")

    def write(self, name: str, data: bytes) -> None:
        """Add one file; blocking."""
        assert _NAME.fullmatch(name), name
        if self._size + len(data) > MAX_BYTES:
            raise LimitExceeded("The evidence of one execution is full.", limitBytes=MAX_BYTES)
        fd = os.open(name, _FILE, 0o600, dir_fd=self._folder)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        self._size += len(data)
        self.files.append(name)

    def trace(self, step: str, **facts: str | int | float | bool | None) -> None:
        """Record a step with its time: names, sizes and codes, never text that was typed or read."""
        line = {"at": shown_ns(time.time_ns()), "step": step, **facts}
        self._trace.append(json.dumps(line, ensure_ascii=False).encode() + b"\n")

    def finish(self, result: dict[str, Any]) -> None:
        """Write the trace and the result, and close; blocking."""
        try:
            self.write("trace.jsonl", b"".join(self._trace))
            self.write("result.json", json.dumps(result, ensure_ascii=False, indent=1).encode())
        finally:
            os.close(self._folder)


def hold(open_folder: Callable[[], int]) -> int:
    """The workspace as a descriptor for creating names; the kernel resolved it beneath the root."""
    found = open_folder()
    try:
        # Files are created through it, and O_PATH does not suffice for every call below.
        return os.open(".", _FOLDER, dir_fd=found)
    finally:
        os.close(found)


def _descend(above: int, name: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)


def _not_creatable(error: OSError) -> PathOutOfScope:
    return PathOutOfScope(
        "The evidence folder cannot be made in the workspace: artifacts/desktop must be plain folders, never links, "
        f"and writable ({error.strerror}).",
        rule="evidence",
    )
