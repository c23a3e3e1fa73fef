"""Background threads of the view: each waits at the service for what is new, so that an idle view does nothing."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

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
