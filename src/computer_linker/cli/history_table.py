"""The history as a table for people: local time, short id, who, scope, what, outcome, duration."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from computer_linker.audit.parts import is_part
from computer_linker.audit.redact import escaped
from computer_linker.audit.wording import described, person
from computer_linker.cli.output import say
from computer_linker.model.history import HistoryEvent

_HEADERS = ("time", "id", "who", "scope", "what", "outcome", "took")
_WHO, _WHAT, _OUTCOME = 2, 4, 5
_GAP = 2
_COLOURS = {"done": "32", "failed": "31", "refused": "33", "unknown": "35", "running": "36", "changed": "41"}
_LEAST_WHAT = 16
_MOST_LINES = 3


def print_events(events: Sequence[HistoryEvent]) -> None:
    """Print events as aligned rows. A terminal gets rows of its width and a line for each day; a pipe gets all of the text."""
    rows = [_cells(event) for event in events]
    natural = [max(len_of(cell) for cell in column) for column in zip(_HEADERS, *rows, strict=True)]
    table = Rows(natural)
    table.head()
    for event, cells in zip(events, rows, strict=True):
        table.row(event, cells)


class Rows:
    """Rows printed one by one, with columns of fixed width."""

    def __init__(self, natural: Sequence[int] | None = None) -> None:
        """Without the `natural` widths of all cells, as for rows that are still to come, each column has its limit."""
        self._is_terminal = sys.stdout.isatty()
        self._has_colour = self._is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._widths = self._fitted(natural)
        self._day = ""

    def head(self) -> None:
        """Print the names of the columns."""
        line = self._joined(_HEADERS)
        say(f"\x1b[1m{line}\x1b[0m" if self._has_colour else line)

    def add(self, event: HistoryEvent) -> None:
        """Print one event."""
        if not is_part(event):
            self.row(event, _cells(event))

    def row(self, event: HistoryEvent, cells: Sequence[str]) -> None:
        """Print the cells of one event, before it the day when it is another than that of the last row."""
        day = local_time(event["startedAt"]).strftime("%A %Y-%m-%d")
        if self._is_terminal and day != self._day:
            self._day = day
            say(f"\x1b[2m{day}\x1b[0m" if self._has_colour else day)
        colour = _COLOURS["failed"] if event["summary"].get("exitCode") else _COLOURS.get(event["outcome"], "0")
        for line in self._folded(cells) if self._is_terminal else [cells]:
            say(self._joined(line, colour if self._has_colour else None))

    def _folded(self, cells: Sequence[str]) -> Iterator[Sequence[str]]:
        """The row as lines: what was done and its outcome go on in a second and third where they are too long."""
        name, slash, _ = cells[_WHO].rpartition("/")
        if slash and len_of(cells[_WHO]) > self._widths[_WHO]:
            # Without its version a client's name often fits.
            cells = [*cells[:_WHO], name, *cells[_WHO + 1 :]]
        folds = {at: _fold(cells[at], self._widths[at]) for at in (_WHAT, _OUTCOME)}
        for number in range(max(map(len, folds.values()))):
            rest = list(cells) if number == 0 else [""] * len(cells)
            for at, lines in folds.items():
                rest[at] = lines[number] if number < len(lines) else ""
            yield rest

    def _fitted(self, natural: Sequence[int] | None) -> list[int]:
        if not self._is_terminal:
            return list(natural or (19, 7, 20, 8, 40, 12, 6))
        width = shutil.get_terminal_size().columns
        wide = width >= 100
        limits = [8, 7, 24 if wide else 9, 12 if wide else 8, width, 36 if wide else 14, 6]
        widths = [min(*pair) for pair in zip(natural or limits, limits, strict=True)]
        others = sum(widths) - widths[_WHAT] + _GAP * (len(widths) - 1)
        widths[_WHAT] = max(_LEAST_WHAT, min(widths[_WHAT], width - others))
        return widths

    def _joined(self, cells: Sequence[str], colour: str | None = None) -> str:
        parts = []
        for at, (cell, width) in enumerate(zip(cells, self._widths, strict=True)):
            text = _cut(cell, width) if self._is_terminal else cell
            space = " " * (width - len_of(text))
            if colour is not None and at == _OUTCOME:
                text = f"\x1b[{colour}m{text}\x1b[0m"
            parts.append(space + text if at == len(cells) - 1 else text + space)
        return (" " * _GAP).join(parts).rstrip()


def local_time(at: str) -> datetime:
    """The time of an event where it is read."""
    return datetime.fromisoformat(at).astimezone()


def len_of(text: str) -> int:
    """The columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cells(event: HistoryEvent) -> list[str]:
    # Invisible characters were escaped when the text was recorded, and are again here.
    plain = described(event)
    clock = "%H:%M:%S" if sys.stdout.isatty() else "%Y-%m-%d %H:%M:%S"
    return [local_time(event["startedAt"]).strftime(clock), *(escaped(part) for part in plain)]


def _fold(text: str, width: int) -> list[str]:
    if len_of(text) <= width or not text.isascii():
        return [text]
    lines = textwrap.wrap(text, width, break_on_hyphens=False)
    return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], " ".join(lines[_MOST_LINES - 1 :])]


def _cut(text: str, width: int) -> str:
    if len_of(text) <= width:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1).rstrip() + "…"


def group_rows(groups: Iterable[dict[str, object]], name: str) -> Iterator[list[str]]:
    """One row for each group of events: its name, whose it is, when it began and was last seen, how many."""
    for group in groups:
        first, last = (local_time(str(group[field])).strftime("%m-%d %H:%M:%S") for field in ("firstAt", "lastAt"))
        client = group["client"]
        who = person(str(group["principal"] or ""), str(client) if client else None)
        yield [str(group[name]), escaped(who), first, last, str(group["events"]), str(group["failed"])]
