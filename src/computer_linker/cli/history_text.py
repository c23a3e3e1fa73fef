"""The views of the history as text for people, its export for spreadsheets and scripts, and its live feed."""

import csv
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from computer_linker.audit.history import History, every_event
from computer_linker.audit.query import Filter, parse, within
from computer_linker.audit.wording import described
from computer_linker.cli.history_table import Rows, group_rows, print_events
from computer_linker.cli.output import note, say, table, visible
from computer_linker.model.history import HistoryCount, HistoryEvent, HistoryGroup, HistorySummary
from computer_linker.owner.history.list import HistoryView
from computer_linker.system import os

_POLL_S = 0.3
COLUMNS = (
    "number", "operationId", "machineId", "startedAt", "durationMs", "scope", "op", "target", "commandPreview", "capability",
    "decision", "reason", "ok", "outcome", "errorCode", "effect", "principal", "session", "connection", "client", "request",
    "boundary", "parent", "approval.said", "approval.by", "approval.way", "approval.extent", "approval.answer", "summary",
)  # fmt: skip
"""Every field of an event; a test compares them."""


def print_view(view: HistoryView) -> None:
    """Print a view for a person."""
    match view.view:
        case "sessions":
            _print_groups(view.sessions, "session", "No session yet.")
            for title, name, groups in (
                ("Processes", "processId", view.processes),
                ("Agent sessions", "sessionId", view.codex_sessions),
            ):
                if groups:
                    say(f"\n{title}")
                    _print_groups(groups, name, "")
        case "connections":
            _print_groups(view.connections, "connection", "No connection yet.")
        case "summary" if view.summary is not None:
            _print_summary(view.summary)
        case "failed_replay":
            _print_templates(view)
        case _ if view.events:
            print_events(view.events)
            if sys.stdout.isatty():
                note("computer-linker history show ID has all of one; computer-linker undo ID takes a change back")
        case _:
            say("Nothing fits.")
    for warning in view.warnings:
        say(f"warning: {warning}")


def _print_groups(groups: Sequence[HistoryGroup], name: str, none: str) -> None:
    if not groups:
        say(none)
        return
    plain = cast(Sequence[dict[str, object]], groups)
    table(list(group_rows(plain, name)), [name, "client", "first", "last", "events", "failed"])


def _print_summary(summary: HistorySummary) -> None:
    say(f"{summary['events']} operations, {summary['failed']} failed ({summary['refused']} refused).")
    for title, counts in (
        ("operation", summary["operations"]), ("client", summary["clients"]), ("scope", summary["scopes"]),
        ("error", summary["errors"]),
    ):  # fmt: skip
        if counts:
            say()
            table([_counted(one) for one in counts], [title, "events", "failed"])


def _counted(one: HistoryCount) -> list[str]:
    return [one["name"], str(one["events"]), str(one["failed"])]


def _print_templates(view: HistoryView) -> None:
    if not view.templates:
        say("Nothing failed.")
        return
    rows = []
    for event, template in zip(view.events, view.templates, strict=True):
        plain = described(event)
        again = "yes" if template["replayable"] else "no"
        rows.append([plain.id, plain.who, plain.what, plain.outcome, again, template["reason"]])
    table(rows, ["id", "who", "what", "outcome", "again", "why"])


def follow_events(history: History, *, scope: str | None, query: str | None, as_json: bool) -> None:
    """Print events as they arrive, until interrupted. A running one is printed once it has ended."""
    history.index.catch_up()
    with history.index.reading() as database:
        newest = database.execute("SELECT COALESCE(MAX(number), 0) FROM events").fetchone()[0]
    printed: set[int] = set()
    rows = None if as_json else Rows()
    if rows is not None:
        rows.head()
        sys.stdout.flush()
    head = b""
    while True:
        now = (history.folder / "head").read_bytes()
        if now != head:
            head = now
            history.index.catch_up()
            newest = _print_new(history, within(parse(query), None, scope), newest, printed, rows)
        time.sleep(_POLL_S)


def _print_new(history: History, found: Filter, after: int, printed: set[int], rows: Rows | None) -> int:
    """Print ended events; return the number to continue after, which stays before the first running one."""
    unfinished: int | None = None
    for event in every_event(history, found, after):
        number = event["number"] or 0
        if event["outcome"] == "unknown":
            unfinished = unfinished or number
        elif number not in printed:
            printed.add(number)
            if rows is None:
                say(json.dumps(event, ensure_ascii=False))
            else:
                rows.add(event)
        after = number if unfinished is None else after
    sys.stdout.flush()
    printed.difference_update([number for number in printed if number <= after])
    return after


def export(events: Iterable[HistoryEvent], format: str, output: Path | None) -> int:
    """Write events as JSON lines or CSV; return how many there were. A file is for its owner alone."""
    if output is None:
        return _export_to(sys.stdout, events, format)
    with private_file(output) as file:
        return _export_to(file, events, format)


def private_file(path: Path) -> TextIO:
    """Open a file to write that only its owner can read, also where it was there already."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    file = os.fdopen(handle, "w", encoding="utf-8", newline="")
    if path.is_file():
        os.fchmod(handle, 0o600)
    return file


def _export_to(file: TextIO, events: Iterable[HistoryEvent], format: str) -> int:
    count = 0
    writer = csv.writer(file, lineterminator="\r\n")
    if format == "csv":
        writer.writerow(COLUMNS)
    for event in events:
        count += 1
        if format == "csv":
            flat: dict[str, Any] = {**event, "summary": json.dumps(event["summary"]) if event["summary"] else ""}
            flat |= {f"approval.{name}": value for name, value in (event["approval"] or {}).items()}
            writer.writerow([_cell(flat.get(name)) for name in COLUMNS])
        else:
            file.write(json.dumps(event, ensure_ascii=True) + "\n")
    return count


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    # A spreadsheet executes a cell that begins like a formula, and a terminal what is in an escape sequence.
    return visible(f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value)
