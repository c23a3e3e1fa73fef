"""Older calls, read from the history's own files."""

from pathlib import Path
from typing import Any

from computer_linker.errors import LinkError

_PAGE = 100


class Past:
    """Pages of the history, from the newest backwards. Blocking: used in a thread."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "audit"
        self._query: str | None = None
        self._cursor: str | None = None
        self._is_over = False

    def older(self, query: str | None = None, until: str | None = None) -> list[dict[str, Any]]:
        """The next page, the newest first; another query or time begins anew. Raises LinkError for a query that is none."""
        from computer_linker.audit.history import HistoryFolder
        from computer_linker.audit.prune import time_of
        from computer_linker.audit.views import Question, answer_now

        terms = " ".join(filter(None, [query, f"until:{time_of(until)}" if until else None])) or None
        if terms != self._query or until is not None:
            self._query, self._cursor, self._is_over = terms, None, False
        if self._is_over or not HistoryFolder.exists(self._folder):
            return []
        found = answer_now(
            HistoryFolder(self._folder), Question("last", None, None, _PAGE, self._query, self._cursor), None
        )
        self._cursor = found["nextCursor"]
        self._is_over = self._cursor is None
        events: list[dict[str, Any]] = found["events"]
        return events


def problem(error: Exception) -> str:
    """A failure of the history in one line."""
    return error.message if isinstance(error, LinkError) else str(error)
