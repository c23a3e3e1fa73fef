"""Read-only access to a history folder: nothing is opened for writing, so a damaged one can still be inspected."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from computer_linker.audit.index import Index
from computer_linker.audit.pages import page
from computer_linker.audit.query import Filter
from computer_linker.audit.secret import Key, load_key
from computer_linker.errors import InvalidRequest, NotFound
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


# Finds one event by its whole id, its short id, or the beginning of its id.

_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{4,26}\Z")
_MOST = 8
LAST = "last"


def matching(given: str, ids: "list[str]") -> list[str]:
    """The ids that a person may mean: exactly this one, or those that end or begin with it."""
    wanted = given.strip().upper()
    if wanted in ids:
        return [wanted]
    return [one for one in ids if one.endswith(wanted) or one.startswith(wanted)] if _ID.match(wanted) else []


def find_event(history: History, given: str) -> HistoryEvent:
    """The event; `last` is the newest. Raises NotFound for none, InvalidRequest for several."""
    wanted = given.strip().upper()
    is_last = given == LAST
    found = Filter(nothing=not is_last and not _ID.match(wanted))
    if is_last:
        found.add("1")
    elif len(wanted) == 26:
        found.add("id = ?", wanted)
    else:
        found.add("(id LIKE ? OR id LIKE ?)", f"%{wanted}", f"{wanted}%")
    events = page(
        history.index, found, newest_first=True, limit=1 if is_last else _MOST, cursor=None, running=history.is_running
    ).events
    if not events:
        raise NotFound(f"There is no operation {given[:40]!r} in the history.", hint="computer-linker history")
    if len(events) > 1:
        known = ", ".join(event["operationId"] for event in events)
        raise InvalidRequest(
            f"Several operations have the id {given[:40]!r}: {known}.", hint="name one of them in full"
        )
    return events[0]


def steps_of(history: History, operation_id: str) -> list[HistoryEvent]:
    """The operations that a batch, or an owner's act, ran; those of the same session that name it as their parent."""
    [own] = page(
        history.index, _only(operation_id), newest_first=True, limit=1, cursor=None, running=history.is_running
    ).events
    later = Filter()
    later.add("number > ? AND session = ?", own["number"], own["session"])
    listed = page(history.index, later, newest_first=False, limit=500, cursor=None, running=history.is_running).events
    return [event for event in listed if event["parent"] == operation_id]


def _only(operation_id: str) -> Filter:
    found = Filter()
    found.add("id = ?", operation_id)
    return found
