"""Reads the undo journal without opening it for writing: for a look at what a change replaced."""

import os
from pathlib import Path

from computer_linker.undo.journal import Record, apply_line, lines_of

_FILE = "journal.jsonl"
_KEPT = "kept"


def read_record(folder: Path, operation_id: str) -> Record | None:
    """The changes of one operation; None when they are not kept, or were taken back."""
    return records(folder).get(operation_id)


def records(folder: Path) -> dict[str, Record]:
    """Every change that can be undone, the oldest first."""
    found: dict[str, Record] = {}
    for value in lines_of(folder / _FILE):
        apply_line(found, value)
    return {key: record for key, record in found.items() if record.state == "done" and record.steps}


def kept_content(folder: Path, name: str, limit: int) -> bytes | None:
    """What a change replaced, up to `limit` bytes; None for a folder, a link, and what is no longer there."""
    try:
        handle = os.open(folder / _KEPT / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            return file.read(limit)
        except IsADirectoryError:
            return None
