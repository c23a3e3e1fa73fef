"""The requests that wait for the owner, on top of the view."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from computer_linker.approvals.request import SETTLE_S
from computer_linker.watch.tables import printable

Format = Callable[[dict[str, Any], int], Iterable[tuple[str, str | None]]]
"""The lines of a request for a width, each with its colour."""


def seconds_until(moment: float) -> int:
    """Whole seconds until a time of the monotonic clock; never below zero."""
    return max(0, round(moment - time.monotonic()))


class Request:
    """A waiting request, and until when."""

    def __init__(self, listed: dict[str, Any]) -> None:
        self.listed = listed
        self.id: str = listed["id"]
        self.until = time.monotonic() + float(listed["secondsLeft"])

    def choice(self, answer: str) -> dict[str, Any] | None:
        """An offered answer that stands, such as `shape`, with what it would cover."""
        return next((one for one in self.listed.get("choices", []) if one["answer"] == answer), None)

    def lines(self, form: Format, width: int) -> Iterator[Text]:
        """All of the request, one line of text each."""
        for line, colour in form(self.listed, width):
            yield Text(printable(line), style=colour or "", no_wrap=True)

    def offers(self) -> Iterator[Text]:
        """What the answers that stand would cover."""
        for one in self.listed.get("choices", []):
            key = "s" if one["answer"] == "shape" else "m"
            matched = "" if one.get("matched") is None else f" (last 30 days: {one['matched']})"
            yield Text(printable(f"  {key} would cover: {one['covers']}{matched}"), style="cyan")


class RequestPanel(VerticalScroll):
    """The request that is answered next. Hidden while nothing waits."""

    def __init__(self, form: Format) -> None:
        super().__init__(id="requests")
        self.form = form
        self.waiting: list[Request] = []
        self._shown: str | None = None
        self._shown_since = 0.0
        self.can_focus = False

    def compose(self) -> ComposeResult:
        yield Static("", id="request-title", classes="title")
        yield Static("", id="request-text")

    @property
    def current(self) -> Request | None:
        return self.waiting[0] if self.waiting else None

    @property
    def is_settled(self) -> bool:
        """True once the present request stood there long enough to have been meant."""
        return time.monotonic() - self._shown_since >= SETTLE_S

    @property
    def is_whole(self) -> bool:
        """True when all of the request is on the screen."""
        return self.max_scroll_y == 0

    def take(self, waiting: list[dict[str, Any]]) -> None:
        """Show what waits now; what is on the screen stays first while it waits."""
        known = {request.id: request for request in self.waiting}
        fresh = [known.get(listed["id"]) or Request(listed) for listed in waiting]
        self.waiting = sorted(fresh, key=lambda request: request.id != self._shown)
        self.draw()

    def next(self) -> None:
        """Put the present request behind the others."""
        self.waiting = self.waiting[1:] + self.waiting[:1]
        self.draw()

    def drop(self, identifier: str) -> None:
        self.waiting = [request for request in self.waiting if request.id != identifier]
        self.draw()

    def draw(self) -> None:
        """Draw the present request, if it is another one than before."""
        self.waiting = [request for request in self.waiting if seconds_until(request.until)]
        self.display = bool(self.waiting)
        current = self.current
        if (current.id if current else None) != self._shown:
            self._shown = current.id if current else None
            self._shown_since = time.monotonic()
            if current is not None:
                lines = list(current.lines(self.form, max(36, self.app.size.width - 4)))
                self.query_one("#request-text", Static).update(Text("\n").join(lines))
                self.scroll_home(animate=False)
                self.app.bell()
        self.tick()

    def tick(self) -> None:
        """Count down."""
        if any(not seconds_until(request.until) for request in self.waiting):
            self.draw()
            return
        if (current := self.current) is not None:
            more = f", {len(self.waiting) - 1} more (n next)" if len(self.waiting) > 1 else ""
            title = (
                f"WAITS FOR YOU  {seconds_until(current.until)} s left{more}   a approve  d deny  s shape  v all of it"
            )
            self.query_one("#request-title", Static).update(Text(title))
