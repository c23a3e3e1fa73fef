"""The hub's store of every machine's history: the signed batches as received, and an index built from them."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple

from pydantic_core import from_json

from computer_linker.errors import InvalidRequest, LinkError, PermissionDenied
from computer_linker.fleet.messages import SKEW_S, HistoryBody, moment, parsed
from computer_linker.fleet.seal import opened
from computer_linker.system import os

MAX_BYTES = 256 << 20
"""Of one machine's batches. With the index, the file takes about two and a half times as much."""


class Retained(NamedTuple):
    """The retention state of a machine: the last deleted record, its seal, and the bytes of the stored batches."""

    number: int
    seal: bytes
    size: int


def retained(database: sqlite3.Connection, machine: str) -> Retained:
    """Return the retention state of a machine."""
    row = database.execute("SELECT number, seal, bytes FROM kept WHERE machine = ?", (machine,)).fetchone()
    return Retained(*row) if row is not None else Retained(0, b"", 0)


def grow(
    database: sqlite3.Connection, machine: str, size: int, limit: int, last_of: Callable[[bytes], tuple[int, bytes]]
) -> None:
    """Add a stored batch to the total and delete the oldest past the limit. `last_of` returns a batch's last number and seal."""
    now = retained(database, machine)
    now = now._replace(size=now.size + size)
    if now.size > limit:
        now = _trimmed(database, machine, now, limit * 9 // 10, last_of)
    database.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", (machine, *now))


def _trimmed(
    database: sqlite3.Connection, machine: str, now: Retained, goal: int, last_of: Callable[[bytes], tuple[int, bytes]]
) -> Retained:
    oldest = "SELECT rowid, frame FROM frames WHERE machine = ? ORDER BY first, last LIMIT 2"
    while now.size > goal:
        rows = database.execute(oldest, (machine,)).fetchall()
        if len(rows) < 2:
            break
        row, frame = rows[0]
        number, seal = last_of(frame)
        database.execute("DELETE FROM frames WHERE rowid = ?", (row,))
        now = Retained(max(now.number, number), seal if number > now.number else now.seal, now.size - len(frame))
    gone = (machine, now.number)
    # The full-text index stores no text of its own, so its entries must be deleted before the rows are.
    database.execute(
        "INSERT INTO words (words, rowid, text) SELECT 'delete', number, text FROM events WHERE machine = ? AND n <= ?",
        gone,
    )
    database.execute("DELETE FROM events WHERE machine = ? AND n <= ?", gone)
    return now


_FILE = "fleet-history.db"
_SCHEMA = ("history.sql", "history-2.sql")
_MAX_LINE = 64 * 1024
_MAX_PROBLEMS = 100
_EVERY = ("operationId", "startedAt", "scope", "op", "principal", "session", "connection")
_WORDS = ("target", "commandPreview", "errorCode", "client")
_KINDS = ("intent", "record", "outcome")
_MISSING = {
    "pruned": "records were pruned on the machine before the fleet had them",
    "joined": "the machine allowed this hub anew; what it did before then is not told",
}
Fate = Literal["stored", "known", "gap", "changed"]


class Verdict(NamedTuple):
    """The result of verifying one machine's stored history."""

    records: int
    begins_at: int | None
    last: int
    first_bad: int | None
    problem: str | None


class Archive:
    """One SQLite file, machines by the fingerprint of their key. Every method blocks, so it is called from a worker thread."""

    def __init__(self, home: Path, own: str, max_bytes: int = MAX_BYTES) -> None:
        self.path, self._own, self._max_bytes = home / _FILE, own, max_bytes
        self._making = threading.Lock()

    def take(self, machine: str, frame: bytes) -> Fate:
        """Store a batch of this machine, once. Raises LinkError for a batch its key did not sign, or that is malformed."""
        body = self._body(frame, machine)
        try:
            with self._changing() as database:
                return self._stored(database, machine, frame, body)
        except (ValueError, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError):
            raise _malformed() from None

    def _stored(self, database: sqlite3.Connection, machine: str, frame: bytes, body: HistoryBody) -> Fate:
        number, seal = self._head(database, machine)
        last = body.first + len(body.lines) - 1
        if body.first > number + 1 and body.after == "more":
            return "gap"
        if last <= retained(database, machine).number:
            return "known"
        if number and not self._joins(database, machine, body, number, seal):
            # Records are immutable: a conflicting later version is stored as a problem, not as history.
            _note(database, machine, body.first, "the machine told its history otherwise before")
            return "changed"
        if number and body.first > number + 1:
            _note(database, machine, number + 1, _MISSING[body.after])
        if last <= number:
            return "known"
        database.execute("INSERT OR IGNORE INTO frames VALUES (?, ?, ?, ?)", (machine, body.first, last, frame))
        for at, (_, line) in enumerate(body.lines):
            if line is not None and body.first + at > number:
                _index(database, machine, body.first + at, line)
        database.execute("INSERT OR REPLACE INTO heads VALUES (?, ?, ?)", (machine, last, body.lines[-1][0]))
        grow(database, machine, len(frame), self._max_bytes, lambda old: self._last_of(old, machine))
        return "stored"

    def last(self, machine: str) -> int:
        """The number of the newest record stored of a machine; 0 for none."""
        with self.reading() as database:
            return self._head(database, machine)[0]

    def verify(self, machine: str) -> Verdict:
        """Check every stored batch again: its signature, its link to the batch before, and the index made from it."""
        with self.reading() as database:
            number, seal, _ = gone = retained(database, machine)
            begins_at: int | None = None
            rows = database.execute(
                "SELECT first, frame FROM frames WHERE machine = ? ORDER BY first, last", (machine,)
            )
            for first, frame in rows:
                try:
                    body = self._body(frame, machine)
                except LinkError as error:
                    return Verdict(number, begins_at, number, first, error.message)
                begins_at = begins_at or max(body.first, number + 1)
                problem = _follows(body, number, seal) or self._differs(database, machine, body, gone.number)
                if problem is not None:
                    return Verdict(number - begins_at + 1, begins_at, number, max(first, number + 1), problem)
                last = body.first + len(body.lines) - 1
                if last > number:
                    number, seal = last, _seal(body, len(body.lines) - 1)
            head = self._head(database, machine)
            if head[0] != number:
                return Verdict(number, begins_at, number, number + 1, "the newest batches are gone")
            return Verdict(number - (begins_at or 1) + 1, begins_at, number, None, None)

    def problems(self, machine: str) -> list[dict[str, Any]]:
        """Problems found in a machine's batches when they were received."""
        with self.reading() as database:
            rows = database.execute(
                "SELECT at, number, problem FROM problems WHERE machine = ? ORDER BY at DESC LIMIT 20", (machine,)
            ).fetchall()
        return [{"at": moment(at), "number": number, "problem": problem} for at, number, problem in rows]

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for queries."""
        with closing(self._open()) as database:
            yield database

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with closing(self._open()) as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        if not self.path.exists():
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        database = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        with self._making:
            made = database.execute("PRAGMA user_version").fetchone()[0]
            if made == 0:
                database.execute("PRAGMA journal_mode = WAL")
            for version, name in enumerate(_SCHEMA[made:], made + 1):
                text = files("computer_linker.fleet").joinpath("assets", name).read_text("utf-8")
                database.executescript(f"BEGIN IMMEDIATE; {text}; PRAGMA user_version = {version}; COMMIT;")
        return database

    def _head(self, database: sqlite3.Connection, machine: str) -> tuple[int, bytes]:
        row = database.execute("SELECT number, seal FROM heads WHERE machine = ?", (machine,)).fetchone()
        return (row[0], row[1]) if row is not None else (0, b"")

    def _joins(self, database: sqlite3.Connection, machine: str, body: HistoryBody, number: int, seal: bytes) -> bool:
        """Return whether a batch continues what is stored, or repeats it exactly."""
        if body.first == number + 1:
            return body.previous == seal
        if body.first > number + 1:
            return True
        last = body.first + len(body.lines) - 1
        if last >= number:
            return _seal(body, number - body.first) == seal
        row = database.execute(
            "SELECT frame FROM frames WHERE machine = ? AND first <= ? AND last >= ? LIMIT 1", (machine, last, last)
        ).fetchone()
        stored = self._body(row[0], machine) if row is not None else None
        return stored is not None and _seal(stored, last - stored.first) == _seal(body, len(body.lines) - 1)

    def _body(self, frame: bytes, machine: str) -> HistoryBody:
        """Return the verified body of a batch. Raises LinkError unless this machine signed it for this hub."""
        message = opened(frame, lambda signer: signer == machine)
        body = parsed(HistoryBody, message.body) if message.kind == "history" else None
        if body is None or not body.lines or any(len(line) != 2 or line[0] is None for line in body.lines):
            raise _malformed()
        if body.to != self._own:
            raise PermissionDenied("This history is for another hub.", rule="another_hub")
        return body

    def _last_of(self, frame: bytes, machine: str) -> tuple[int, bytes]:
        body = self._body(frame, machine)
        return body.first + len(body.lines) - 1, _seal(body, len(body.lines) - 1)

    def _differs(self, database: sqlite3.Connection, machine: str, body: HistoryBody, gone: int) -> str | None:
        stored = dict(
            database.execute(
                "SELECT n, opening FROM events WHERE machine = ? AND n BETWEEN ? AND ?",
                (machine, body.first, body.first + len(body.lines) - 1),
            ).fetchall()
        )
        for at, (_, line) in enumerate(body.lines):
            if body.first + at <= gone:
                continue
            opening = stored.pop(body.first + at, None)
            fields = _fields(line) if line is not None else {}
            opens = fields.get("kind") in ("intent", "record")
            if opening != (line if opens else None):
                return f"the index tells record {body.first + at} otherwise"
            if fields and not opens and not self._has_closing(database, machine, fields["operationId"], line, gone):
                return f"the index tells the outcome in record {body.first + at} otherwise"
        return None

    def _has_closing(
        self, database: sqlite3.Connection, machine: str, operation_id: str, line: bytes | None, gone: int
    ) -> bool:
        found = "SELECT closing FROM events WHERE machine = ? AND id = ?"
        rows = database.execute(found, (machine, operation_id)).fetchall()
        # The event it ended may have been deleted with the oldest batches.
        return any(closing == line for (closing,) in rows) or (gone > 0 and not rows)


def _malformed() -> InvalidRequest:
    return InvalidRequest("A batch of history does not have its shape.", rule="malformed")


def _seal(body: HistoryBody, at: int) -> bytes:
    return body.lines[at][0] or b""


def _follows(body: HistoryBody, number: int, seal: bytes) -> str | None:
    if not number:
        return "the oldest batches are gone" if body.after == "more" else None
    if body.first + len(body.lines) - 1 < number:
        # Sent again as part of a longer batch, which was received later and checked against this one's place.
        return None
    if body.first <= number:
        return None if _seal(body, number - body.first) == seal else "a batch tells an older record otherwise"
    if body.first == number + 1:
        return None if body.previous == seal else "a batch does not follow the one before it"
    return "a batch is missing" if body.after == "more" else None


def _fields(line: bytes) -> dict[str, Any]:
    """Parse the used fields of a history record. Raises ValueError: an unreadable record would hide all others."""
    fields: dict[str, Any] = from_json(line, allow_inf_nan=False)
    if type(fields) is not dict or len(line) > _MAX_LINE or fields.get("kind") not in _KINDS:
        raise ValueError("no record")
    needed = ("operationId",) if fields["kind"] == "outcome" else _EVERY
    if not all(type(fields.get(name)) is str for name in needed):
        raise ValueError("a record lacks what every record has")
    if not all(type(fields.get(name)) in (str, NoneType) for name in _WORDS):
        raise ValueError("a record's words are words")
    if type(fields.get("ok")) not in ((bool,) if fields["kind"] == "outcome" else (bool, NoneType)):
        raise ValueError("a record was done or not")
    return fields


def _order(started_at: str) -> str:
    """Return the sort key of a record; a timestamp in the future counts as now."""
    now = moment(time.time() + SKEW_S) or ""
    return min(started_at, now)


def _note(database: sqlite3.Connection, machine: str, number: int, problem: str) -> None:
    database.execute("INSERT INTO problems VALUES (?, ?, ?, ?)", (machine, time.time(), number, problem))
    database.execute(
        "DELETE FROM problems WHERE machine = ? AND rowid NOT IN"
        " (SELECT rowid FROM problems WHERE machine = ? ORDER BY at DESC LIMIT ?)",
        (machine, machine, _MAX_PROBLEMS),
    )


def _index(database: sqlite3.Connection, machine: str, number: int, line: bytes) -> None:
    fields = _fields(line)
    if fields["kind"] == "outcome":
        database.execute(
            "UPDATE events SET ok = ?, code = ?, closing = ? WHERE machine = ? AND id = ? AND ok IS NULL",
            (fields["ok"], fields.get("errorCode"), line, machine, fields["operationId"]),
        )
        return
    words = (fields["op"], *(fields.get(name) for name in _WORDS), fields["scope"])
    text = " ".join(word for word in words if word)
    row = database.execute(
        "INSERT INTO events (machine, n, id, at, scope, op, ok, code, client, session, connection, principal, opening, text)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            machine, number, fields["operationId"], _order(fields["startedAt"]), fields["scope"], fields["op"], fields.get("ok"),
            fields.get("errorCode"), fields.get("client"), fields["session"], fields["connection"], fields["principal"],
            line, text,
        ),
    )  # fmt: skip
    database.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row.lastrowid, text))
