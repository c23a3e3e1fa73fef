"""How much of each machine's history a hub keeps: the newest, within a bound that no machine can talk it out of."""

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

MAX_BYTES = 256 << 20
"""Of one machine's batches. With the index, the file takes about two and a half times as much."""


class Kept(NamedTuple):
    """Where what is stored of a machine begins: after this record, whose seal was this; and how many bytes its batches have."""

    number: int
    seal: bytes
    size: int


def kept(database: sqlite3.Connection, machine: str) -> Kept:
    """What is kept of a machine."""
    row = database.execute("SELECT number, seal, bytes FROM kept WHERE machine = ?", (machine,)).fetchone()
    return Kept(*row) if row is not None else Kept(0, b"", 0)


def grow(
    database: sqlite3.Connection, machine: str, size: int, limit: int, last_of: Callable[[bytes], tuple[int, bytes]]
) -> None:
    """Count a stored batch, and let the oldest go when it is too much. `last_of` tells the last record of one, and its seal."""
    now = kept(database, machine)
    now = now._replace(size=now.size + size)
    if now.size > limit:
        now = _trimmed(database, machine, now, limit * 9 // 10, last_of)
    database.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", (machine, *now))


def _trimmed(
    database: sqlite3.Connection, machine: str, now: Kept, goal: int, last_of: Callable[[bytes], tuple[int, bytes]]
) -> Kept:
    oldest = "SELECT rowid, frame FROM frames WHERE machine = ? ORDER BY first, last LIMIT 2"
    while now.size > goal:
        rows = database.execute(oldest, (machine,)).fetchall()
        if len(rows) < 2:
            break
        row, frame = rows[0]
        number, seal = last_of(frame)
        database.execute("DELETE FROM frames WHERE rowid = ?", (row,))
        now = Kept(max(now.number, number), seal if number > now.number else now.seal, now.size - len(frame))
    gone = (machine, now.number)
    # The index of words holds no text of its own, so it must be told what to forget before that is gone.
    database.execute(
        "INSERT INTO words (words, rowid, text) SELECT 'delete', number, text FROM events WHERE machine = ? AND n <= ?",
        gone,
    )
    database.execute("DELETE FROM events WHERE machine = ? AND n <= ?", gone)
    return now
