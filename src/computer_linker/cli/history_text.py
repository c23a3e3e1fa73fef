"""The history as lines of text: for people, for spreadsheets, and as it happens."""

import csv
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from computer_linker.audit.history import History, every_event
from computer_linker.audit.query import Filter, parse, within
from computer_linker.audit.redact import escaped
from computer_linker.cli.output import say, table

_COLOURS = {"done": "32", "failed": "31", "refused": "33", "unknown": "35", "running": "36", "changed": "41"}
_LOOK_S = 0.3
COLUMNS = (
    "number", "operationId", "startedAt", "durationMs", "scope", "op", "target", "capability", "decision", "ok", "outcome",
    "errorCode", "effect", "principal", "session", "connection", "client", "boundary", "parent",
)  # fmt: skip


def tell(told: dict[str, Any]) -> None:
    """A view as a table. What is shown was made visible when it was kept, and is again here."""
    groups = told.get("sessions") or told.get("connections")
    if groups:
        name = "session" if "sessions" in told else "connection"
        rows = [
            [_plain(group[name]), group["firstAt"], group["lastAt"], str(group["events"]), str(group["failed"])]
            for group in groups
        ]
        table(rows, [name, "first", "last", "events", "failed"])
        return
    if not told["events"]:
        say("Nothing fits.")
        return
    for event in told["events"]:
        say(line(event))
    for advice in dict.fromkeys(f"next: {each['op']}: {each['advice']}" for each in told.get("suggestions", [])):
        say(advice)
    for warning in told.get("warnings", []):
        say(f"warning: {warning}")


def line(event: dict[str, Any]) -> str:
    """One event on one line; in colour on a terminal, unless NO_COLOR is set."""
    how = event["outcome"] if event["errorCode"] is None else f"{event['outcome']} ({event['errorCode']})"
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        how = f"\x1b[{_COLOURS.get(event['outcome'], '0')}m{how}\x1b[0m"
    took = "" if event["durationMs"] is None else f"{event['durationMs']:.1f} ms"
    parts = (event["startedAt"], event["scope"], event["op"], event["target"], how, took, event["client"])
    return "  ".join(part if part is how else _plain(part) for part in parts if part)


def follow_events(history: History, *, scope: str | None, query: str | None, as_json: bool) -> None:
    """Tell events as they come, until interrupted. One that is still under way is told once it is over."""
    history.index.catch_up()
    with history.index.reading() as database:
        newest = database.execute("SELECT COALESCE(MAX(number), 0) FROM events").fetchone()[0]
    told: set[int] = set()
    head = b""
    while True:
        now = (history.folder / "head").read_bytes()
        if now != head:
            head = now
            history.index.catch_up()
            newest = _tell_new(history, within(parse(query), None, scope), newest, told, as_json=as_json)
        time.sleep(_LOOK_S)


def _tell_new(history: History, found: Filter, after: int, told: set[int], *, as_json: bool) -> int:
    """Tell what is over; the number to go on after, which stays before the first that is not."""
    unfinished: int | None = None
    for event in every_event(history, found, after):
        number = event["number"]
        if event["outcome"] == "unknown":
            unfinished = unfinished or number
        elif number not in told:
            told.add(number)
            say(json.dumps(event, ensure_ascii=False) if as_json else line(event))
        after = number if unfinished is None else after
    sys.stdout.flush()
    told.difference_update([number for number in told if number <= after])
    return after


def export(events: Iterable[dict[str, Any]], format: str, output: Path | None) -> int:
    """Write events as JSON lines or CSV; how many there were."""
    if output is None:
        return _export_to(sys.stdout, events, format)
    with output.open("w", encoding="utf-8", newline="") as file:
        return _export_to(file, events, format)


def _export_to(file: Any, events: Iterable[dict[str, Any]], format: str) -> int:
    count = 0
    writer = csv.writer(file, lineterminator="\r\n")
    if format == "csv":
        writer.writerow(COLUMNS)
    for event in events:
        count += 1
        if format == "csv":
            writer.writerow([_cell(event[name]) for name in COLUMNS])
        else:
            file.write(json.dumps(event, ensure_ascii=True) + "\n")
    return count


def _cell(value: Any) -> Any:
    # A spreadsheet runs what begins like a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _plain(text: str) -> str:
    return escaped(text)
