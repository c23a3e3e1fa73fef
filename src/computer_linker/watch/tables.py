"""The four tables of the view: their columns, and the rows from what the service answered."""

import re
from collections.abc import Iterable, Sequence
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


COLUMNS: dict[View, tuple[tuple[str, int, int], ...]] = {
    "calls": (("time", 8, 8), ("who", 13, 24), ("scope", 6, 14), ("what", 0, 0), ("outcome", 13, 36), ("took", 5, 6)),
    "clients": (
        ("client", 16, 24), ("as", 0, 0), ("scopes", 14, 24), ("links", 5, 5), ("calls", 5, 6), ("failed", 6, 6), ("now", 3, 4),
        ("last", 8, 8),
    ),
    "running": (("id", 11, 32), ("scope", 8, 14), ("kind", 7, 8), ("status", 8, 10), ("who", 12, 24), ("what", 0, 0)),
    "listening": (("what", 9, 12), ("address", 0, 0), ("who", 17, 30), ("closed by", 26, 40)),
}  # fmt: skip
"""Column titles, and the most cells they take on a narrow and on a wide screen while another needs the room; the one with 0 is
cut last."""
_WIDE = 100
_LEAST = 16
_VERSION = re.compile(r"(?<=.)/[\w.+-]{1,20}\Z")
_KEYS = (
    "1-4 views", "Enter details", "a approve", "d deny", "s shape", "x stop", "u undo", "p pause", "o open", "/ filter",
    "b back", "? help", "q quit",
)  # fmt: skip


def widths(view: View, total: int, rows: Sequence[Row]) -> list[int]:
    """The width of each column for these rows on a screen of so many cells; one cell is left between two columns."""
    columns = COLUMNS[view]
    natural = [max([len(title), *(row.cells[at].cell_len for row in rows)]) for at, (title, _, _) in enumerate(columns)]
    most = [narrow if is_narrow(total) else wide for _, narrow, wide in columns]
    whole, room = most.index(0), total - len(columns)
    found = [min(width, bound or width) for width, bound in zip(natural, most, strict=True)]
    others = sum(found) - found[whole]
    if room - others < min(_LEAST, found[whole]):
        # Too narrow for all: the others shrink together, so that the one that matters keeps some room.
        share = max(0, room - _LEAST) / max(1, others)
        found = [max(3, int(width * share)) for width in found]
        found[whole] = _LEAST
        return found
    found[whole] = min(found[whole], room - others)
    spare = room - sum(found)
    for at, width in enumerate(natural):
        # Nothing is cut while there is room beside it.
        added = min(spare, width - found[at])
        found[at], spare = found[at] + added, spare - added
    return found


def is_narrow(total: int) -> bool:
    """Whether a screen of so many cells has the narrow columns."""
    return total < _WIDE


def key_lines(width: int) -> list[str]:
    """The keys in lines of this width, each key beside its meaning."""
    lines = [""]
    for key in _KEYS:
        joined = f"{lines[-1]}  {key}" if lines[-1] else key
        if len(joined) > width and lines[-1]:
            lines.append(key)
        else:
            lines[-1] = joined
    return lines


def fitted(cell: Text, width: int) -> Text:
    """The cell cut to its column, with a mark where something is missing."""
    cut = cell.copy()
    cut.truncate(width, overflow="ellipsis")
    return cut


def call_rows(calls: Calls, words: list[str], total: int) -> list[Row]:
    """The calls; on a narrow screen clients without their versions."""
    return [Row(call.id, _call(call, is_narrow(total))) for call in calls.newest_first(words)[:MOST_ROWS]]


def _call(call: Call, short: bool) -> tuple[Text, ...]:
    row = call.row
    who = _VERSION.sub("", row.who) if short else row.who
    colour = _COLOURS.get(row.outcome.split(":")[0].split(" ")[0], "yellow")
    return (*_cells(call.at, who, row.scope, row.what), Text(printable(row.outcome), style=colour), Text(row.took))


def client_rows(calls: Calls) -> list[Row]:
    return [
        Row(f"{client.principal} {client.name}", _cells(
            client.name, client.principal, " ".join(sorted(client.scopes)), len(client.connections), client.calls,
            client.failed, client.running, client.last_at))
        for client in calls.clients()
    ]  # fmt: skip


def counts(calls: Calls, processes: Iterable[dict[str, Any]]) -> str:
    """`2 clients seen  1 call and 0 processes running`"""
    clients, calling = len(calls.clients()), sum(call.is_running for call in calls.by_id.values())
    runs = sum(one.get("status") == "running" for one in processes)
    return f"{_count(clients, 'client')} seen  {_count(calling, 'call')} and {_count(runs, 'process')} running"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}{'es' if what.endswith('s') else 's'}"


def process_name(one: dict[str, Any]) -> str:
    """A process on the screen, by its command line."""
    return process_label(one.get("commandPreview") or "", one.get("name"))


def running_rows(processes: Iterable[dict[str, Any]]) -> list[Row]:
    """Processes and agent sessions, those that run first."""
    found = []
    for one in processes:
        cells = _cells(one["processId"], one["scope"], one["kind"], one["status"], one["who"], process_name(one))
        found.append((one["status"] != "running", Row(one["processId"], cells)))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def listening_rows(listeners: Iterable[dict[str, Any]]) -> list[Row]:
    return [Row(one["address"], _cells(one["kind"], one["address"], one["who"], one["close"])) for one in listeners]


def _cells(*values: object) -> tuple[Text, ...]:
    return tuple(Text(printable("" if value is None else str(value)), no_wrap=True) for value in values)


def printable(text: str) -> str:
    """The text with every character that could move the cursor or hide others shown as a mark."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
