"""Background threads of the view: each waits at the service for what is new, so that an idle view does nothing."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from computer_linker.client.socket_client import ServiceUnreachable, ask_or_start, ask_service
from computer_linker.errors import LinkError
from computer_linker.model.times import local
from computer_linker.watch.calls import Calls

# Questions and acts of the view: owner's operations by name, over the private socket.


class Refused(Exception):
    """The service refused, or none answers; the message is for the status line.

    `again` is what the owner may add to the request to mean it nevertheless; None where nothing helps.
    """

    def __init__(self, message: str, question: str = "", again: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.question, self.again = question, again


@dataclass(frozen=True, slots=True)
class Link:
    """The service of one state folder. Every call is a short connection of its own, in the caller's thread."""

    home: Path

    def ask(self, operation: str, /, **given: Any) -> dict[str, Any]:
        """The result of an owner's operation. Raises Refused."""
        return _data(self._sent(operation, given, start=False))

    def begin(self, operation: str, /, **given: Any) -> dict[str, Any]:
        """The same, from a service that is started when none runs."""
        return _data(self._sent(operation, given, start=True))

    def _sent(self, operation: str, given: dict[str, Any], *, start: bool) -> dict[str, Any]:
        request = {"owner": operation, "input": given}
        try:
            answer = ask_or_start(self.home, request) if start else ask_service(self.home, request)
        except (ServiceUnreachable, OSError) as error:
            raise Refused(str(error)) from error
        if answer is None:
            raise Refused("no service runs")
        return answer


def _data(answer: dict[str, Any]) -> dict[str, Any]:
    if answer.get("ok"):
        data: dict[str, Any] = answer["data"]
        return data
    error = answer.get("error")
    if isinstance(error, dict):
        details = error.get("details") or {}
        hint = details.get("hint")
        raise Refused(f"{error['message']}{f' ({hint})' if hint else ''}", error["message"], details.get("again"))
    raise Refused(str(error or "the service refused the request"))


_WAIT_S = 25.0
_PAUSE_S = 0.2
"""Records that come within this time are drawn together."""
_AWAY_S = 2.0

Deliver = Callable[[str, Any], None]
"""Called in the feed's thread with the kind of news and its value; it hands both to the screen."""


class Feeds:
    """Delivers `events`, `approvals` and `away`. The threads are daemons: they end with the program, also while they wait."""

    def __init__(self, link: Link, deliver: Deliver, home: Path) -> None:
        self._link, self._deliver, self._home = link, deliver, home
        self._was_away = False
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
                    self._was_away = True
                    self._deliver("away", str(error))
            self._over.wait(_AWAY_S)

    def _events(self) -> None:
        news = self._link.ask("watch.events")
        number = news["number"]
        if self._was_away:
            # What was called before this program found the service again is in the history alone.
            self._was_away, news["records"] = False, [*Past(self._home).older(), *news["records"]]
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
_TO_THE_SECOND = len("2026-01-31T10:00:00")


class Past:
    """Pages of the history, from the newest or from a time backwards. Blocking: used in a thread."""

    def __init__(self, home: Path, until: str | None = None) -> None:
        from computer_linker.audit.prune import time_of

        self._until = None if until is None else time_of(until)
        self._folder = home / "audit"
        self._query: str | None = None
        self._cursor: str | None = None
        self._is_over = False

    @property
    def moment(self) -> str | None:
        """The time it began at, as a person here reads it."""
        until = self._until
        return local(until) if until and len(until) > _TO_THE_SECOND else until

    def older(self, query: str | None = None) -> list[dict[str, Any]]:
        """The next page, the newest first; another query begins anew. Raises LinkError for a query that is none."""
        from computer_linker.audit.history import HistoryFolder
        from computer_linker.audit.views import Question, answer_now

        if query != self._query:
            self._query, self._cursor, self._is_over = query, None, False
        if self._is_over or not HistoryFolder.exists(self._folder):
            return []
        terms = " ".join(filter(None, [query, f"until:{self._until}" if self._until else None])) or None
        found = answer_now(HistoryFolder(self._folder), Question("last", None, None, _PAGE, terms, self._cursor), None)
        self._cursor = found["nextCursor"]
        self._is_over = self._cursor is None
        events: list[dict[str, Any]] = found["events"]
        return events


class Sight:
    """The calls on the screen: the newest with all that come, or those before a time."""

    def __init__(self, home: Path, until: str | None = None) -> None:
        self.calls, self.past = Calls(), Past(home, until)

    def join(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            self.calls.take(event)


def problem(error: Exception) -> str:
    """A failure of the history in one line."""
    return error.message if isinstance(error, LinkError) else str(error)
