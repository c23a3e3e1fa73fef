"""Background threads of the view: each waits at the service for what is new, so that an idle view does nothing."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from computer_linker.errors import LinkError
from computer_linker.watch.link import Link, Refused

_WAIT_S = 25.0
_PAUSE_S = 0.2
"""Records that come within this time are drawn together."""
_AWAY_S = 2.0

Deliver = Callable[[str, Any], None]
"""Called in the feed's thread with the kind of news and its value; it hands both to the screen."""


class Feeds:
    """Delivers `events`, `approvals` and `away`. The threads are daemons: they end with the program, also while they wait."""

    def __init__(self, link: Link, deliver: Deliver) -> None:
        self._link, self._deliver = link, deliver
        self._over = threading.Event()

    def start(self) -> None:
        for name, run in (("events", self._events), ("approvals", self._approvals)):
            threading.Thread(target=self._forever, args=(run,), name=f"watch-{name}", daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    def _forever(self, run: Callable[[], None]) -> None:
        while not self._over.is_set():
            # The screen may be gone by the time something is delivered to it.
            with suppress(RuntimeError):
                try:
                    run()
                except Refused as error:
                    self._deliver("away", str(error))
            self._over.wait(_AWAY_S)

    def _events(self) -> None:
        news = self._link.ask("watch.events")
        number = news["number"]
        self._deliver("back", news)
        while not self._over.is_set():
            news = self._link.ask("watch.events", after=number, waitSeconds=_WAIT_S)
            number = news["number"]
            self._deliver("events", news)
            if news["records"]:
                time.sleep(_PAUSE_S)

    def _approvals(self) -> None:
        known: list[str] | None = None
        while not self._over.is_set():
            given = {"stays": True} if known is None else {"known": known}
            listed = self._link.ask("approvals.list", **given)
            known = [request["id"] for request in listed["waiting"]]
            self._deliver("approvals", listed)


# Older calls, read from the history's own files.

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
