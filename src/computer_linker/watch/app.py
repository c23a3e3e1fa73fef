"""The full-screen program: tables of what goes on, requests on top, acts on keys."""

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import Input, Static

from computer_linker.errors import LinkError
from computer_linker.model.times import local
from computer_linker.watch import tables
from computer_linker.watch.acts import Acts, printable_lines
from computer_linker.watch.calls import Call, desktop_command, file_of, open_on_desktop, pager_of
from computer_linker.watch.feeds import Feeds, Link, Refused, Sight, problem
from computer_linker.watch.requests import Format, RequestPanel
from computer_linker.watch.row_list import RowList
from computer_linker.watch.screens import STYLE, QuestionScreen, ReadScreen

_REFRESH_S = 0.5
_SETTLED_S = 0.1


class WatchApp(App[None]):
    """What clients do, as it happens."""

    CSS = STYLE
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        # With priority: each key is taken before the next one is read, so that quick typing goes where it is meant to.
        Binding(key, action, priority=True)
        for key, action in {
            **{str(number): f"view('{view}')" for number, view in enumerate(tables.VIEWS, 1)},
            "tab": "next_view",
            **{key: f"request('{key}')" for key in "adsmvn"},
            "x": "stop", "u": "undo", "p": "pause", "o": "open", "slash": "filter", "b": "older", "t": "time",
            "l": "live", "home": "live", "question_mark": "help", "escape": "clear", "q": "quit",
        }.items()
    ]  # fmt: skip
    _OWN: ClassVar[set[str]] = {
        "view", "next_view", "request", "stop", "undo", "pause", "open", "filter", "older", "time", "live", "help", "quit",
    }  # fmt: skip

    def __init__(self, home: Path, form: Format) -> None:
        super().__init__()
        self._home, self._link = home, Link(home)
        self._panel = RequestPanel(form)
        self._acts = Acts(self, self._panel)
        self._feeds = Feeds(self._link, self._deliver, home)
        self._now = self._sight = Sight(home)
        self._view, self._words = tables.VIEWS[0], list[str]()
        self._processes: list[dict[str, Any]] = []
        self._listeners: list[dict[str, Any]] = []
        self._paused: str | None = None
        self._away: str | None = None
        self._widths: list[int] = []
        self._asks_time = False
        self._will_refresh = False
        self._countdown: Timer | None = None
        self._resized: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Static("", id="head", markup=False)
        yield self._panel
        yield Static("", id="views")
        yield RowList(id="table")
        yield Static("", id="row", markup=False)
        yield Input(id="filter", compact=True)
        yield Static("", id="note", markup=False)
        yield Static("", id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False
        self._countdown = self.set_interval(1.0, self._panel.tick, pause=True)
        self._table.focus()
        self._columns()
        self._in_thread(self._first)

    def on_unmount(self) -> None:
        self._feeds.stop()

    def on_resize(self) -> None:
        if self._resized is not None:
            self._resized.stop()
        self._resized = self.set_timer(_SETTLED_S, self._draw_whole)

    def _draw_whole(self) -> None:
        """Draw everything for the size by now.

        Once the size has settled: the library draws only what differs from its last layout, and a terminal that is resized
        several times in a row has lost lines that the library takes for drawn.
        """
        self._columns()
        self.screen.refresh()

    @property
    def _table(self) -> RowList:
        return self.query_one("#table", RowList)

    @property
    def selected(self) -> str | None:
        """What the selected row stands for."""
        row = self._table.row
        return None if row is None else row.key

    @property
    def view(self) -> tables.View:
        return self._view

    def call_of(self, identifier: str | None) -> Call | None:
        return self._sight.calls.by_id.get(identifier or "")

    def facts_of(self, identifier: str | None) -> dict[str, Any] | None:
        """What the service said of a process or listener on the screen."""
        name, listed = ("processId", self._processes) if self._view == "running" else ("address", self._listeners)
        return next((one for one in listed if one.get(name) == identifier), None)

    def say(self, text: str) -> None:
        """Show one line of news at the bottom."""
        self.query_one("#note", Static).update(tables.printable(text))

    # What comes in, from the threads that wait for it.

    def _deliver(self, kind: str, value: Any) -> None:
        self.call_from_thread(getattr(self, f"_on_{kind}"), value)

    def _on_back(self, news: dict[str, Any]) -> None:
        self._away = None
        self._on_events(news)
        self._head()
        self.refresh_lists()

    def _on_away(self, reason: str) -> None:
        self._away = reason
        self._panel.take([])
        self._head()

    def _on_events(self, news: dict[str, Any]) -> None:
        calls = self._now.calls
        known = (self._paused, calls.running)
        self._now.join(news["records"])
        calls.set_running(news["running"])
        self._paused = (
            (local(news["pausedUntil"]) if news["pausedUntil"] else "you end it (p)") if news["paused"] else None
        )
        if not news["records"] and known == (self._paused, calls.running):
            # The wait is over and nothing came.
            return
        if known[0] != self._paused:
            self.say(f"Every client is paused until {self._paused}." if self._paused else "Clients may go on.")
        if news["missed"]:
            self.say(f"{news['missed']} calls went by too quickly to show; b reads them from the history")
        if self._view in ("calls", "clients"):
            self._rows()
        self._head()
        self.refresh_lists()

    def _on_approvals(self, listed: dict[str, Any]) -> None:
        self._panel.take(listed["waiting"])
        if self._countdown is not None:
            self._countdown.resume() if self._panel.waiting else self._countdown.pause()
        self.on_row_list_moved()
        self._head()

    def _on_lists(self, lists: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
        if (self._processes, self._listeners) != lists:
            self._processes, self._listeners = lists
            if self._view in ("running", "listening"):
                self._rows()
            self._head()

    def _on_older(self, found: tuple[Sight, list[dict[str, Any]]]) -> None:
        sight, events = found
        sight.join(events)
        self._rows()
        self._head()
        self.say(f"{len(events)} older calls" if events else "there is nothing older")

    def refresh_lists(self) -> None:
        """Ask what runs and what listens, in a thread; once for all that comes within a second."""
        if not self._will_refresh:
            self._will_refresh = True
            self.set_timer(_REFRESH_S, self._refresh_now)

    def _refresh_now(self) -> None:
        self._will_refresh = False
        self._in_thread(self._ask_lists)

    def _first(self) -> None:
        self._link.begin("watch.events")
        self._feeds.start()
        self._deliver("older", (self._now, self._now.past.older()))

    def _ask_lists(self) -> None:
        processes = self._link.ask("process.list")["processes"]
        self._deliver("lists", (processes, self._link.ask("status")["listeners"]))

    def _in_thread(self, work: Callable[[], None]) -> None:
        """Run something that waits; a refusal is shown. The threads are daemons, so that quitting waits for none."""

        def run() -> None:
            try:
                work()
            except (Refused, LinkError, OSError, ValueError) as error:
                self.call_from_thread(self.say, problem(error))

        threading.Thread(target=run, daemon=True).start()

    # What is drawn.

    def _head(self) -> None:
        moment = self._sight.past.moment
        state = f"BEFORE {moment} (l: now)" if moment else "live"
        state = f"PAUSED until {self._paused}" if self._paused else state
        state = f"NO SERVICE: {self._away}" if self._away else state
        waits = f"  {len(self._panel.waiting)} WAIT" if self._panel.waiting else ""
        counts = tables.counts(self._now.calls, self._processes)
        self.query_one("#head", Static).update(tables.printable(f" Computer Linker  {state}{waits}  {counts}"))

    def _columns(self) -> None:
        self.query_one("#keys", Static).update("\n".join(tables.key_lines(self.size.width)))
        shown = [
            f"[{number} {view}]" if view == self._view else f" {number} {view} "
            for number, view in enumerate(tables.VIEWS, 1)
        ]
        words = f"   filter: {' '.join(self._words)}" if self._words else ""
        self.query_one("#views", Static).update(Text("".join(shown) + words))
        self._rows()

    def _rows(self) -> None:
        """Show the rows of the view as they are now."""
        match self._view:
            case "calls":
                rows = tables.call_rows(self._sight.calls, self._words, self.size.width - 1)
            case "clients":
                rows = tables.client_rows(self._sight.calls)
            case "running":
                rows = tables.running_rows(self._processes)
            case _:
                rows = tables.listening_rows(self._listeners)
        unique = list({row.key: row for row in reversed(rows)}.values())[::-1]
        self._widths = tables.widths(self._view, self.size.width - 1, unique)
        self._table.set_columns([title for title, _, _ in tables.COLUMNS[self._view]], self._widths)
        self._table.show(unique)

    def on_row_list_moved(self) -> None:
        """Show all of the selected row where its columns cut it."""
        row = self._table.row
        cells = () if row is None else row.cells
        is_cut = not self._panel.waiting and any(
            cell.cell_len > width for cell, width in zip(cells, self._widths, strict=False)
        )
        self.query_one("#row", Static).update("  ".join(cell.plain for cell in cells if cell) if is_cut else "")

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key is the view's own: not while a question is open, and but for Escape not while a field is."""
        if action == "clear":
            return len(self.screen_stack) == 1
        is_free = len(self.screen_stack) == 1 and not isinstance(self.focused, Input)
        return is_free if action in self._OWN else True

    def action_view(self, view: tables.View) -> None:
        self._view = view
        self._columns()
        if view in ("running", "listening"):
            self.refresh_lists()

    def action_next_view(self) -> None:
        self.action_view(tables.VIEWS[(tables.VIEWS.index(self._view) + 1) % len(tables.VIEWS)])

    def action_request(self, key: str) -> None:
        self._acts.request(key)

    def action_stop(self) -> None:
        self._acts.stop()

    def action_undo(self) -> None:
        self._acts.undo()

    def action_pause(self) -> None:
        self._acts.pause(is_paused=self._paused is not None)

    def action_filter(self) -> None:
        self._prompt("words to look for; Enter shows the calls that have them all", " ".join(self._words))

    def action_time(self) -> None:
        self._asks_time = True
        self._prompt("back to a time: 2h, 3d, 2026-11-01, 2026-11-01T08:30Z")

    def action_older(self) -> None:
        sight, words = self._sight, " ".join(self._words) or None
        self._in_thread(lambda: self._deliver("older", (sight, sight.past.older(words))))

    def action_live(self) -> None:
        self._sight, self._words = self._now, []
        self.action_view("calls")
        self._head()
        self._table.select(0)

    def action_clear(self) -> None:
        self.say("")
        self._close_prompt()
        if self._words:
            self._words = []
            self._columns()

    def action_help(self) -> None:
        from computer_linker.watch.screens import LINES

        self.push_screen(ReadScreen("Keys", [Text(line) for line in LINES]))

    def action_open(self) -> None:
        picture = self._panel.current.listed.get("picture") if self._panel.current else None
        address = picture or (self.selected if self._view == "listening" else None)
        if address is not None:
            command = desktop_command(address)
            if command is not None:
                open_on_desktop(command)
            self.say(f"opened {address}" if command else f"there is no desktop here to open {address}")
            return
        call = self.call_of(self.selected) if self._view == "calls" else None
        path = file_of(self._home, call) if call is not None else None
        if path is None:
            self.say("this row has no file that is there now")
            return
        command, environment = pager_of(path)
        with self.suspend():
            subprocess.run(command, env=environment, check=False)

    def on_row_list_chosen(self) -> None:
        self._acts.details()

    def _prompt(self, placeholder: str, value: str = "") -> None:
        field = self.query_one(Input)
        field.placeholder, field.value, field.display = placeholder, value, True
        # At once, not by the next message: what is typed quickly after the key belongs to the field.
        self.screen.set_focus(field)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        asked_time = self._asks_time
        self._close_prompt()
        if asked_time:
            self._go_to(event.value.strip())
            return
        self._words = event.value.lower().split()
        self._columns()

    def _close_prompt(self) -> None:
        self._asks_time = False
        self.query_one(Input).display = False
        self.screen.set_focus(self._table)

    def _go_to(self, moment: str) -> None:
        if moment:
            self._in_thread(lambda: self._deliver("gone", (sight := Sight(self._home, moment), sight.past.older())))

    def _on_gone(self, found: tuple[Sight, list[dict[str, Any]]]) -> None:
        self._sight, self._words = found[0], []
        self._sight.calls.set_running(self._now.calls.running)
        self._on_older(found)
        self._columns()

    def ask(self, question: str, answers: dict[str, str], then: Callable[[str | None], None]) -> None:
        """Ask the owner; `then` gets the key."""
        self.push_screen(QuestionScreen(question, answers), then)

    def act(self, operation: str, done: Callable[[dict[str, Any]], str], /, **given: Any) -> None:
        """Send an act in a thread and show what came of it; one that must be meant is asked about first."""

        def work() -> None:
            try:
                result = self._link.ask(operation, **given)
            except Refused as refused:
                if refused.again is None:
                    raise
                meant = {**given, **refused.again}
                question = printable_lines(refused.question)

                def then(key: str | None) -> None:
                    if key == "y":
                        self.act(operation, done, **meant)

                self.call_from_thread(self.ask, question, {"y": "yes, do it"}, then)
                return
            self.call_from_thread(self.say, done(result))

        self._in_thread(work)

    def look(self, operation: str, show: Callable[[dict[str, Any]], None], /, **given: Any) -> None:
        """Ask something in a thread and show the answer."""
        self._in_thread(lambda: self.call_from_thread(show, self._link.ask(operation, **given)))
