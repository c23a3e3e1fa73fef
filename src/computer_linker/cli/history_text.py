"""The history as text: for people, for spreadsheets, and as a live feed."""

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
_POLL_S = 0.3
_DIGESTS = ("digest", "key_sha256", "hub_sha256")
_MAX_FACT = 80
COLUMNS = (
    "number", "operationId", "startedAt", "durationMs", "scope", "op", "target", "commandPreview", "capability",
    "decision", "ok", "outcome",
    "errorCode", "effect", "principal", "session", "connection", "client", "boundary", "parent",
    "approval.said", "approval.by", "approval.way", "approval.extent", "approval.answer",
)  # fmt: skip


def print_view(view: dict[str, Any]) -> None:
    """Print a view as a table. Invisible characters were escaped when the text was recorded, and are again here."""
    groups = view.get("sessions") or view.get("connections")
    if groups:
        name = "session" if "sessions" in view else "connection"
        rows = [
            [_plain(group[name]), group["firstAt"], group["lastAt"], str(group["events"]), str(group["failed"])]
            for group in groups
        ]
        table(rows, [name, "first", "last", "events", "failed"])
        return
    if not view["events"]:
        say("Nothing fits.")
        return
    for event in view["events"]:
        say(line(event))
    for advice in dict.fromkeys(f"next: {each['op']}: {each['advice']}" for each in view.get("suggestions", [])):
        say(advice)
    for warning in view.get("warnings", []):
        say(f"warning: {warning}")


def line(event: dict[str, Any]) -> str:
    """One event on one line; in colour on a terminal, unless NO_COLOR is set."""
    exit_code = event["summary"].get("exitCode")
    why = event["errorCode"] or (f"exit {exit_code}" if exit_code else None)
    how = event["outcome"] if why is None else f"{event['outcome']} ({why})"
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        how = f"\x1b[{_COLOURS.get(event['outcome'], '0')}m{how}\x1b[0m"
    took = "" if event["durationMs"] is None else f"{event['durationMs']:.1f} ms"
    parts = (
        event["startedAt"],
        event["operationId"],
        event["scope"],
        event["op"],
        event.get("commandPreview") or event["target"] or _about(event),
        how,
        took,
        event["client"],
        _answer(event),
    )
    return "  ".join(part if part is how else _plain(part) for part in parts if part)


def _about(event: dict[str, Any]) -> str:
    """What an owner's act, which has no scope and no target, was about."""
    if event["scope"]:
        return ""
    facts = {name: value for name, value in event["summary"].items() if value is not None and name not in _DIGESTS}
    return " ".join(f"{name}={str(value)[:_MAX_FACT]}" for name, value in facts.items())


def _answer(event: dict[str, Any]) -> str:
    given = event["approval"]
    if given is None:
        return ""
    return f"{'approved' if given['said'] == 'yes' else 'denied'} by {given['by']} ({given['way']})"


def follow_events(history: History, *, scope: str | None, query: str | None, as_json: bool) -> None:
    """Print events as they arrive, until interrupted. A running one is printed once it has ended."""
    history.index.catch_up()
    with history.index.reading() as database:
        newest = database.execute("SELECT COALESCE(MAX(number), 0) FROM events").fetchone()[0]
    printed: set[int] = set()
    head = b""
    while True:
        now = (history.folder / "head").read_bytes()
        if now != head:
            head = now
            history.index.catch_up()
            newest = _print_new(history, within(parse(query), None, scope), newest, printed, as_json=as_json)
        time.sleep(_POLL_S)


def _print_new(history: History, found: Filter, after: int, printed: set[int], *, as_json: bool) -> int:
    """Print ended events; return the number to continue after, which stays before the first running one."""
    unfinished: int | None = None
    for event in every_event(history, found, after):
        number = event["number"]
        if event["outcome"] == "unknown":
            unfinished = unfinished or number
        elif number not in printed:
            printed.add(number)
            say(json.dumps(event, ensure_ascii=False) if as_json else line(event))
        after = number if unfinished is None else after
    sys.stdout.flush()
    printed.difference_update([number for number in printed if number <= after])
    return after


def export(events: Iterable[dict[str, Any]], format: str, output: Path | None) -> int:
    """Write events as JSON lines or CSV; return how many there were."""
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
            flat = {**event, **{f"approval.{name}": value for name, value in (event["approval"] or {}).items()}}
            writer.writerow([_cell(flat.get(name)) for name in COLUMNS])
        else:
            file.write(json.dumps(event, ensure_ascii=True) + "\n")
    return count


def _cell(value: Any) -> Any:
    # A spreadsheet executes a cell that begins like a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _plain(text: str) -> str:
    return escaped(text)
