"""Read-only access to a history folder: nothing is opened for writing, so a damaged one can still be inspected."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from computer_linker.audit.index import Index
from computer_linker.audit.pages import page
from computer_linker.audit.query import Filter
from computer_linker.audit.secret import Key, load_key
from computer_linker.model.history import HistoryEvent


class History(Protocol):
    """What a view needs of a history."""

    folder: Path

    @property
    def index(self) -> Index: ...

    @property
    def key(self) -> Key: ...

    def is_running(self, operation_id: str) -> bool: ...


class HistoryFolder:
    """The history of a state folder, read by another process than the service."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = load_key(folder / "key")
        self.index = Index(folder, self.key)

    @staticmethod
    def exists(folder: Path) -> bool:
        """True once something was recorded there."""
        return (folder / "key").exists()

    def is_running(self, operation_id: str) -> bool:
        """Return False: only the service itself can tell; for a reader an intent without an outcome is unknown."""
        return False


def every_event(history: History, found: Filter, after: int = 0) -> Iterator[HistoryEvent]:
    """All events after this number that fit, oldest first, a page at a time."""
    cursor: str | None = f"e{after}"
    while True:
        listed = page(history.index, found, newest_first=False, limit=500, cursor=cursor, running=history.is_running)
        yield from listed.events
        cursor = listed.next_cursor
        if cursor is None:
            return
