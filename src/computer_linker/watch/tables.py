"""The four tables of the view: their columns, and the rows from what the service answered."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from rich.text import Text

from computer_linker.audit.wording import process_label
from computer_linker.watch.calls import Call, Calls

View = Literal["calls", "clients", "running", "listening"]
VIEWS: tuple[View, ...] = ("calls", "clients", "running", "listening")
MOST_ROWS = 300
_COLOURS = {"done": "green", "running": "bold yellow", "failed": "red", "refused": "red", "unknown": "magenta"}


class Row(NamedTuple):
    """One row: what it stands for, and its cells."""

    key: str
    cells: tuple[Text, ...]


COLUMNS: dict[View, tuple[tuple[str, int], ...]] = {
    "calls": (("time", 8), ("who", 12), ("scope", 8), ("what", 0), ("outcome", 18), ("took", 6)),
    "clients": (("client", 16), ("as", 0), ("scopes", 14), ("calls", 6), ("failed", 7), ("now", 4), ("last", 11)),
    "running": (("id", 14), ("scope", 10), ("kind", 8), ("status", 10), ("who", 12), ("what", 0)),
    "listening": (("what", 9), ("address", 0), ("who", 17), ("closed by", 20)),
}
"""Column titles and widths in cells; the one with 0 takes what is left."""


def widths(view: View, total: int) -> list[int]:
    """The width of each column for a screen of so many cells; one cell is left between two columns."""
    columns = COLUMNS[view]
    fixed = sum(width for _, width in columns) + len(columns)
    if total - fixed >= 16:
        return [width or total - fixed for _, width in columns]
    # A narrow screen: the fixed columns shrink together, so that the one that matters keeps some room.
    left = max(total - len(columns) - 16, len(columns) * 3)
    share = left / max(1, sum(width for _, width in columns))
    return [max(3, int(width * share)) if width else 16 for _, width in columns]


def fitted(cell: Text, width: int) -> Text:
    """The cell cut to its column, with a mark where something is missing."""
    cut = cell.copy()
    cut.truncate(width, overflow="ellipsis")
    return cut


def call_rows(calls: Calls, words: list[str]) -> list[Row]:
    return [Row(call.id, _call(call)) for call in calls.newest_first(words)[:MOST_ROWS]]


def _call(call: Call) -> tuple[Text, ...]:
    row = call.row
    colour = _COLOURS.get(row.outcome.split(":")[0].split(" ")[0], "yellow")
    return (*_cells(call.at, row.who, row.scope, row.what), Text(printable(row.outcome), style=colour), Text(row.took))


def client_rows(calls: Calls) -> list[Row]:
    return [
        Row(client.connection, _cells(client.name, client.principal, " ".join(sorted(client.scopes)), client.calls,
                                      client.failed, client.running, client.last_at))
        for client in calls.clients()
    ]  # fmt: skip


def running_rows(processes: Iterable[dict[str, Any]]) -> list[Row]:
    """Processes and agent sessions, those that run first."""
    found = []
    for one in processes:
        what = process_label(one.get("commandPreview") or "", one.get("name"))
        cells = _cells(one["processId"], one["scope"], one["kind"], one["status"], one["principal"], what)
        found.append((one["status"] != "running", Row(one["processId"], cells)))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def listening_rows(listeners: Iterable[dict[str, Any]]) -> list[Row]:
    return [Row(one["address"], _cells(one["kind"], one["address"], one["who"], one["close"])) for one in listeners]


def _cells(*values: object) -> tuple[Text, ...]:
    return tuple(Text(printable("" if value is None else str(value)), no_wrap=True) for value in values)


def printable(text: str) -> str:
    """The text with every character that could move the cursor or hide others shown as a mark."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
