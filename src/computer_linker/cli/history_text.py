"""The history as lines of text: for people, for spreadsheets, and as it happens."""

import csv
import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from computer_linker.audit.history import History, every_event
from computer_linker.audit.query import parse, within
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
    for suggestion in told.get("suggestions", []):
        say(f"next: {suggestion['op']}: {suggestion['advice']}")
    for warning in told.get("warnings", []):
        say(f"warning: {warning}")


def line(event: dict[str, Any]) -> str:
    """One event on one line; in colour on a terminal."""
    how = event["outcome"] if event["errorCode"] is None else f"{event['outcome']} ({event['errorCode']})"
    if sys.stdout.isatty():
        how = f"\x1b[{_COLOURS.get(event['outcome'], '0')}m{how}\x1b[0m"
    took = "" if event["durationMs"] is None else f"{event['durationMs']:.1f} ms"
    parts = (event["startedAt"], event["scope"], event["op"], event["target"], how, took, event["client"])
    return "  ".join(part if part is how else _plain(part) for part in parts if part)


def follow_events(history: History, *, scope: str | None, query: str | None, as_json: bool) -> None:
    """Tell events as they come, until interrupted. One that is still under way is told once it is over."""
    seen: set[int] = set()
    waiting = within(parse(query), None, scope)
    history.index.catch_up()
    seen.update(event["number"] for event in every_event(history, waiting) if event["outcome"] != "unknown")
    size = -1
    while True:
        grown = (history.folder / "head").read_bytes()
        if hash(grown) != size:
            size = hash(grown)
            history.index.catch_up()
            for event in every_event(history, within(parse(query), None, scope)):
                if event["number"] not in seen and event["outcome"] != "unknown":
                    seen.add(event["number"])
                    say(json.dumps(event, ensure_ascii=False) if as_json else line(event))
            sys.stdout.flush()
        time.sleep(_LOOK_S)


def export(events: Iterable[dict[str, Any]], format: str, output: Path | None) -> int:
    """Write events as JSON lines or CSV; how many there were."""
    if output is None:
        return _export_to(sys.stdout, events, format)
    with output.open("w", encoding="utf-8", newline="") as file:
        return _export_to(file, events, format)


def _export_to(file: Any, events: Iterable[dict[str, Any]], format: str) -> int:
    count = 0
    if format == "jsonl":
        for count, event in enumerate(events, start=1):
            file.write(json.dumps(event, ensure_ascii=True) + "\n")
        return count
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for count, event in enumerate(events, start=1):
        writer.writerow([_cell(event[name]) for name in COLUMNS])
    return count


def _cell(value: Any) -> Any:
    # A spreadsheet runs what begins like a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _plain(text: str) -> str:
    return escaped(text)
