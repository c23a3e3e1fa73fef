"""Pages of events: found by the index, read from the journal, in an order that cursors can continue."""

import re
import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from computer_linker.audit.index import Index
from computer_linker.audit.layout import MAX_LINE, PRIVATE, SEAL, list_segments, segment_path
from computer_linker.audit.query import Filter
from computer_linker.audit.reading import read_line
from computer_linker.audit.secret import Key
from computer_linker.config.load import CONFIG_NAME
from computer_linker.errors import InvalidRequest
from computer_linker.model.history import HistoryEvent
from computer_linker.system import os

_SEALED = re.compile(r"s([0-9a-f]{16})([0-9a-f]{16})([0-9a-f]{16})\Z")
_PLAIN = re.compile(r"e([0-9]{1,18})\Z")


def to_cursor(number: int, reader: str | None, key: Key) -> str:
    """Return the cursor after this event; a `None` reader is the owner. Any other reader's is sealed for that reader alone."""
    if reader is None:
        return f"e{number}"
    nonce = secrets.token_hex(8)
    hidden = f"{number ^ _pad(nonce, reader, key):016x}"
    return f"s{nonce}{hidden}{_mark(nonce, hidden, reader, key)}"


def from_cursor(cursor: str | None, reader: str | None, key: Key) -> int | None:
    """Return the event after which a page continues. Raises InvalidRequest for a cursor not issued to this reader."""
    if cursor is None:
        return None
    if reader is None and (plain := _PLAIN.match(cursor)):
        return int(plain[1])
    sealed = _SEALED.match(cursor)
    if reader is not None and sealed and secrets.compare_digest(_mark(sealed[1], sealed[2], reader, key), sealed[3]):
        return int(sealed[2], 16) ^ _pad(sealed[1], reader, key)
    raise InvalidRequest("This cursor is not one of the history's. Leave it out to begin at the start.")


def _pad(nonce: str, reader: str, key: Key) -> int:
    return int(key.seal(b"cursor", f"{nonce} {reader}".encode("utf-8", "surrogatepass"))[:15], 16)


def _mark(nonce: str, hidden: str, reader: str, key: Key) -> str:
    return key.seal(b"cursor-mark", f"{nonce} {hidden} {reader}".encode("utf-8", "surrogatepass"))[:16].decode("ascii")


MAX_LIMIT = 500
_COLUMNS = (
    "number, id, at, scope, op, segment, offset, length, previous, end_segment, end_offset, end_length, end_previous"
)


@dataclass(frozen=True, slots=True)
class Page:
    """Events in the requested order, and the cursor of the next page; None at the end."""

    events: list[HistoryEvent]
    next_cursor: str | None


def page(
    index: Index, found: Filter, *, newest_first: bool, limit: int, cursor: str | None, running: Callable[[str], bool]
) -> Page:
    """One page. A cursor is an event's number, so that nothing is skipped or repeated while events arrive.

    Callers other than the owner get it sealed, and events without their number: both would reveal how much others did.
    """
    limit = max(1, min(limit, MAX_LIMIT))
    if found.nothing:
        return Page([], None)
    after = from_cursor(cursor, found.reader, index.key)
    with index.reading() as database:
        rows = _rows(database, found, newest_first=newest_first, limit=limit + 1, after=after)
    with _Segments(index) as segments:
        events = [segments.event(row, running) for row in rows[:limit]]
        if segments.is_behind:
            # Pruned meanwhile: the records moved, or are gone.
            index.catch_up()
            with index.reading() as database:
                rows = _rows(database, found, newest_first=newest_first, limit=limit + 1, after=after)
            events = [segments.event(row, running) for row in rows[:limit]]
    if found.reader is not None:
        events = [{**event, "number": None} for event in events]
    return Page(events, to_cursor(rows[limit - 1][0], found.reader, index.key) if len(rows) > limit else None)


def _rows(
    database: sqlite3.Connection, found: Filter, *, newest_first: bool, limit: int, after: int | None
) -> list[tuple[Any, ...]]:
    where, values = list(found.where), list(found.values)
    order = "DESC" if newest_first else "ASC"
    sign = "<" if newest_first else ">"
    if not found.words:
        if after is not None:
            where.append(f"number {sign} ?")
            values.append(after)
        conditions = " AND ".join(where) or "1"
        query = f"SELECT {_COLUMNS} FROM events WHERE {conditions} ORDER BY number {order} LIMIT ?"  # noqa: S608 - constant text
        return database.execute(query, (*values, limit)).fetchall()
    # The full-text index gives rows in order one by one, so that a common word costs no more than a rare one.
    bound = "" if after is None else f" AND words.rowid {sign} {after:d}"
    conditions = " AND ".join(where) or "1"
    joined = "words CROSS JOIN events ON number = words.rowid"
    query = (
        f"SELECT {_COLUMNS} FROM {joined} WHERE words MATCH ?{bound} AND {conditions}"  # noqa: S608 - constant text
        f" ORDER BY words.rowid {order} LIMIT ?"
    )
    return database.execute(query, (" ".join(found.words), *values, limit)).fetchall()


class _Segments:
    """The journal's files, opened as they are needed for one page."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._handles: dict[int, int] = {}
        self._machines: dict[int, str | None] = {}
        self.is_behind = False
        """True once a file was missing that the index names."""

    def __enter__(self) -> "_Segments":
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles.values():
            os.close(handle)

    def event(self, row: tuple[Any, ...], running: Callable[[str], bool]) -> HistoryEvent:
        number, operation_id, at, scope, op = row[:5]
        opening = self._line(*row[5:9])
        closing = self._line(*row[9:13]) if row[9] is not None else None
        if opening is None or (row[9] is not None and closing is None):
            # The index has the event, but its record fails verification: report that and nothing else.
            opening, outcome = (
                {"n": number, "operationId": operation_id, "startedAt": at, "scope": scope, "op": op},
                "changed",
            )
        elif opening["kind"] == "record":
            outcome = _how(opening)
        elif closing is None:
            outcome = "running" if running(operation_id) else "unknown"
        else:
            opening, outcome = {**opening, **closing, "n": number}, _how(closing)
        return event_of({"machine": self._machine(row[5]), **opening}, outcome)

    def _machine(self, segment: int) -> str | None:
        if segment not in self._machines:
            self._machines[segment] = machine_of(self._index.folder, segment)
        return self._machines[segment]

    def _line(self, segment: int, offset: int, length: int, previous: bytes) -> dict[str, Any] | None:
        handle = self._handles.get(segment)
        if handle is None:
            try:
                handle = os.open(segment_path(self._index.folder, segment), os.O_RDONLY | PRIVATE)
            except FileNotFoundError:
                self.is_behind = True
                return None
            self._handles[segment] = handle
        return read_line(handle, self._index.key, offset, length, previous)


def machine_of(folder: Path, segment: int = -1) -> str | None:
    """The machine id at the head of a segment, of the newest for the reserve; the config's where that has none."""
    head: Any = None
    if segment < 0:
        segment = next(reversed(list_segments(folder)), 0)
    try:
        with segment_path(folder, segment).open("rb") as file:
            head = from_json(file.readline(MAX_LINE)[SEAL + 1 :])
    except (FileNotFoundError, ValueError):
        pass  # Nothing is recorded yet, or the head was changed: `verify` reports that.
    machine = head.get("machine") if isinstance(head, dict) else None
    if isinstance(machine, str) and machine:
        return machine
    try:
        config = from_json((folder.parent / CONFIG_NAME).read_bytes())
    except (OSError, ValueError):
        return None
    machine = config.get("machineId") if isinstance(config, dict) else None
    return machine if isinstance(machine, str) else None


def event_of(fields: dict[str, Any], outcome: str) -> HistoryEvent:
    """Return an event as every view shows it."""
    return {
        "number": fields["n"],
        "operationId": fields["operationId"],
        "machineId": fields.get("machine"),
        "startedAt": fields["startedAt"],
        "durationMs": fields.get("durationMs"),
        "scope": fields["scope"],
        "op": fields["op"],
        "target": fields.get("target"),
        "commandPreview": fields.get("commandPreview"),
        "capability": fields.get("capability"),
        "decision": fields.get("decision"),
        "reason": fields.get("reason"),
        "approval": fields.get("approval"),
        "ok": fields.get("ok"),
        "outcome": outcome,
        "errorCode": fields.get("errorCode"),
        "effect": fields.get("effect"),
        "principal": fields.get("principal"),
        "session": fields.get("session"),
        "connection": fields.get("connection"),
        "client": fields.get("client"),
        "request": fields.get("request"),
        "boundary": fields.get("boundary"),
        "parent": fields.get("parent"),
        "summary": fields.get("summary", {}),
    }


def _how(fields: dict[str, Any]) -> str:
    if fields["ok"]:
        return "done"
    return "refused" if fields.get("decision") == "deny" else "failed"
