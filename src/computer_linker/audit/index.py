"""The index: a SQLite database made from the journal, for finding events. It can be deleted and rebuilt."""

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from computer_linker.audit.layout import PRIVATE, Head, read_head
from computer_linker.audit.query import define_holds
from computer_linker.audit.reading import BrokenLink, JournalPosition, Line, lines_after
from computer_linker.audit.reserve import Anchor, kept_lines, read_anchor
from computer_linker.audit.secret import Key
from computer_linker.system import os

SCHEMA = 4
HANDLE = re.compile(r"(?:proc|codex|claude)_[0-9a-f]{24}\Z")
_CHUNK = 4000
_NOTHING = (-1, -1, -1)


class Index:
    """Finds events. Every method blocks, so call it from a worker thread; it is thread-safe."""

    def __init__(self, folder: Path, key: Key) -> None:
        self.folder = folder
        self.key = key
        self.path = folder / "index.db"
        self._writing = threading.Lock()
        self.broken: BrokenLink | None = None
        self.leave_off = False
        """Set when the service ends: what is not taken in yet can wait."""
        self._taken = _NOTHING
        """The newest record taken in, the newest file of the reserve, and the newest record from before the whole chain."""

    def catch_up(self) -> None:
        """Index new journal records. Stops before a record that fails verification."""
        head = self._head()
        if head is None:
            return
        try:
            anchor = read_anchor(self.folder, self.key)
            if (head.number, anchor.last_id, anchor.place.number) == self._taken and self.path.exists():
                return
            with self._writing, closing(self._open()) as database:
                self._take_reserve(database, anchor)
                while self._take_in(database, head):
                    if self.leave_off:
                        return
            self.broken = None
            self._taken = (head.number, anchor.last_id, anchor.place.number)
        except BrokenLink as broken:
            self.broken = broken

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for queries with a consistent snapshot of the index."""
        database = self._open()
        if self._taken == _NOTHING and self.broken is None:
            # It was just rebuilt.
            database.close()
            self.catch_up()
            database = self._open()
        with closing(database):
            define_holds(database)
            database.execute("BEGIN")
            yield database

    def differs(self) -> int | None:
        """Return the number of the first event where index and journal differ; None when they agree."""
        with self._writing, closing(self._open()) as database:
            anchor = read_anchor(self.folder, self.key)
            mark = self._mark(database)
            rows = database.execute("SELECT * FROM events ORDER BY number")
            ends: dict[str, tuple[int, tuple[Any, ...], str | None]] = {}
            whole = lines_after(self.folder, self.key, anchor.place, (mark.segment, mark.offset))
            for line in chain(kept_lines(self.folder, self.key, anchor), whole):
                if line.fields["kind"] in ("intent", "record"):
                    row, stored = _row(line), rows.fetchone()
                    if stored is None or not _agree(row, stored):
                        return line.after.number
                    if line.fields["kind"] == "intent":
                        known = (stored[5], stored[6], *stored[15:20], stored[23])
                        ends[line.fields["operationId"]] = (line.after.number, known, row[23])
                elif line.fields["kind"] == "outcome" and line.fields["operationId"] in ends:
                    number, end, handle = ends.pop(line.fields["operationId"])
                    *rest, last = _ending(line)
                    if end != (*rest, handle or last):
                        return number
            extra = rows.fetchone()
            invented = [number for number, end, _ in ends.values() if end[2] is not None]
            return invented[0] if invented else (extra[0] if extra else None)

    def rebuild(self) -> None:
        """Delete the index and rebuild it."""
        with self._writing:
            self._discard()
        self.catch_up()

    def _head(self) -> Head | None:
        handle = os.open(self.folder / "head", os.O_RDONLY | PRIVATE)
        try:
            return read_head(handle, self.key)
        finally:
            os.close(handle)

    def _take_in(self, database: sqlite3.Connection, head: Head) -> bool:
        """Index one chunk in one transaction; False when there was nothing left."""
        database.execute("BEGIN IMMEDIATE")
        try:
            place = self._mark(database)
            batch = []
            broken: BrokenLink | None = None
            try:
                for line in islice(lines_after(self.folder, self.key, place, (head.segment, head.offset)), _CHUNK):
                    batch.append(line)
            except BrokenLink as found:
                broken = found
            _insert(database, batch)
            if batch:
                _set_mark(database, batch[-1].after)
        except BaseException:
            database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")
        if broken is not None:
            raise broken
        return len(batch) == _CHUNK

    def _take_reserve(self, database: sqlite3.Connection, anchor: Anchor) -> None:
        """Point events to their place in the reserve, and delete those it does not have."""
        known = {row[0] for row in database.execute("SELECT id FROM kept")}
        ids = [file.id for file in anchor.kept]
        oldest = database.execute("SELECT MIN(number) FROM events WHERE segment > 0").fetchone()[0]
        if known == set(ids) and (oldest is None or oldest > anchor.place.number):
            return
        with _immediate(database):
            row = database.execute("SELECT number FROM mark").fetchone()
            taken = row[0] if row else 0
            for lines in _batches(kept_lines(self.folder, self.key, anchor)):
                _insert(database, [line for line in lines if line.after.number > taken])
                _move(database, [line for line in lines if line.after.number <= taken])
            _forget(database, anchor.place.number, ids)
            database.execute("DELETE FROM kept")
            database.executemany("INSERT INTO kept VALUES (?)", [(one,) for one in ids])
            if taken < anchor.place.number:
                _set_mark(database, anchor.place)

    def _mark(self, database: sqlite3.Connection) -> JournalPosition:
        row = database.execute("SELECT segment, offset, number, seal FROM mark").fetchone()
        begin = read_anchor(self.folder, self.key).place
        if row is None or row[2] < begin.number:
            return begin
        return JournalPosition(*row)

    def _open(self) -> sqlite3.Connection:
        database = self._connect()
        try:
            version = database.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.OperationalError:
            database.close()
            raise
        except sqlite3.DatabaseError:
            version = -1
        if version == SCHEMA:
            return _set_up(database)
        database.close()
        # Another version, or not a database: all its data is in the journal.
        if version != 0:
            self._discard()
        database = _set_up(self._connect())
        database.execute("PRAGMA journal_mode = WAL")
        with _immediate(database):
            if database.execute("PRAGMA user_version").fetchone()[0] == 0:
                for statement in _statements():
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {SCHEMA}")
        return database

    def _connect(self) -> sqlite3.Connection:
        fresh = not self.path.exists()
        database = sqlite3.connect(self.path, isolation_level=None, timeout=30, check_same_thread=False)
        if fresh:
            self.path.chmod(0o600)
        return database

    def _discard(self) -> None:
        self._taken = _NOTHING
        for name in ("index.db", "index.db-wal", "index.db-shm"):
            (self.folder / name).unlink(missing_ok=True)


def _batches(lines: Iterator[Line]) -> Iterator[list[Line]]:
    while batch := list(islice(lines, _CHUNK)):
        yield batch


def _set_mark(database: sqlite3.Connection, place: JournalPosition) -> None:
    values = (place.segment, place.offset, place.number, place.seal)
    database.execute("INSERT OR REPLACE INTO mark VALUES (1, ?, ?, ?, ?)", values)


def _move(database: sqlite3.Connection, lines: list[Line]) -> None:
    """Update the file positions of indexed events."""
    openings = [line for line in lines if line.fields["kind"] != "outcome"]
    outcomes = [line for line in lines if line.fields["kind"] == "outcome"]
    database.executemany("UPDATE events SET segment = ?, offset = ? WHERE number = ?", _places(openings))
    database.executemany("UPDATE events SET end_segment = ?, end_offset = ? WHERE end_number = ?", _places(outcomes))


def _places(lines: list[Line]) -> list[tuple[int, int, int]]:
    return [(line.segment, line.offset, line.after.number) for line in lines]


def _forget(database: sqlite3.Connection, number: int, kept: list[int]) -> None:
    """Delete the events up to this number that are in none of these reserve files."""
    gone = f"number <= ? AND segment NOT IN ({','.join(str(-one) for one in kept) or '0'})"
    database.execute(
        f"INSERT INTO words (words, rowid, text) SELECT 'delete', number, text FROM events WHERE {gone}",  # noqa: S608
        (number,),
    )
    database.execute(f"DELETE FROM events WHERE {gone}", (number,))  # noqa: S608 - own integers


def _set_up(database: sqlite3.Connection) -> sqlite3.Connection:
    # A power cut may lose the newest rows; they are indexed again from the journal.
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("PRAGMA cache_size = -4000")
    return database


@contextmanager
def _immediate(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _statements() -> list[str]:
    from importlib.resources import files

    text = files("computer_linker.audit").joinpath("assets", "schema.sql").read_text("utf-8")
    return [statement for statement in text.split(";") if statement.strip()]


def _insert(database: sqlite3.Connection, batch: list[Line]) -> None:
    rows: dict[str, list[Any]] = {}
    ends: list[tuple[Any, ...]] = []
    for line in batch:
        fields = line.fields
        match fields["kind"]:
            case "intent" | "record":
                rows[fields["operationId"]] = _row(line)
            case "outcome":
                end = _ending(line)
                row = rows.get(fields["operationId"])
                if row is None:
                    ends.append((*end, fields["operationId"]))
                elif row[15] is None:
                    row[5], row[6], row[15:20], row[23] = end[0], end[1], end[2:7], row[23] or end[7]
    database.executemany(
        "INSERT OR REPLACE INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", rows.values()
    )
    database.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", ((row[0], row[20]) for row in rows.values()))
    database.executemany(
        "UPDATE events SET ok = ?, code = ?, end_number = ?, end_segment = ?, end_offset = ?, end_length = ?,"
        " end_previous = ?, handle = COALESCE(handle, ?) WHERE id = ? AND ok IS NULL",
        ends,
    )


def _agree(row: list[Any], stored: tuple[Any, ...]) -> bool:
    # An intent's columns 5, 6, 15 to 19 and 23 are filled by its outcome; the caller compares those.
    if row[5] is not None and (row[5], row[6], row[23]) != (*stored[5:7], stored[23]):
        return False
    return (
        tuple(row[:5]) == stored[:5]
        and tuple(row[7:15]) == stored[7:15]
        and tuple(row[20:23]) == stored[20:23]
        and row[24] == stored[24]
    )


def _ending(line: Line) -> tuple[Any, ...]:
    fields = line.fields
    place = (line.after.number, line.segment, line.offset, line.length, line.previous)
    return (fields["ok"], fields.get("errorCode"), *place, _handle(fields))


def _row(line: Line) -> list[Any]:
    fields = line.fields
    yes = fields.get("approval") or {}
    yes = yes if yes.get("said") == "yes" else {}
    words = [fields.get(name) for name in ("op", "target", "commandPreview", "errorCode", "client", "scope")]
    return [
        line.after.number,
        fields["operationId"],
        fields["startedAt"],
        fields["scope"],
        fields["op"],
        fields.get("ok"),
        fields.get("errorCode"),
        fields.get("client"),
        fields["session"],
        fields["connection"],
        fields["principal"],
        line.segment,
        line.offset,
        line.length,
        line.previous,
        *(None,) * 5,
        " ".join(word for word in words if word),
        yes.get("way"),
        yes.get("by"),
        _handle(fields),
        fields.get("request"),
    ]


def _handle(fields: dict[str, Any]) -> str | None:
    """The process or agent session that an event is about."""
    summary = fields.get("summary") or {}
    known = (summary.get("processId"), summary.get("sessionId"), summary.get("process"), fields.get("target"))
    return next((one for one in known if isinstance(one, str) and HANDLE.match(one)), None)
