"""Cache of parsed symbols by content: an unchanged or renamed file is not parsed again."""

import hashlib
import json
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from computer_linker.providers.symbols.extract import Symbol
from computer_linker.providers.symbols.languages import VERSION

_MAX_FILES = 200_000
_MAX_SEEN = 20_000
Mark = tuple[str, int, int, int, int, int]
"""Root, device, inode, size, and the times of the last change of content and of the file itself."""


def digest_of(content: bytes, language: str) -> bytes:
    """The cache key of a content in a language, for the present tables."""
    return hashlib.blake2b(content, digest_size=16, salt=f"{VERSION}:{language}".encode()[:16]).digest()


class Index:
    """A table in the state folder; its loss only costs time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / "symbols.sqlite"
        self._lock = threading.Lock()
        self._seen: OrderedDict[Mark, bytes] = OrderedDict()
        self._table = self._opened()

    def seen(self, mark: Mark) -> bytes | None:
        """The digest of a file in exactly this state, if it was read before."""
        with self._lock:
            return self._seen.get(mark)

    def remember(self, mark: Mark, digest: bytes) -> None:
        with self._lock:
            self._seen[mark] = digest
            while len(self._seen) > _MAX_SEEN:
                self._seen.popitem(last=False)

    def raw(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """The stored JSON of those digests that are known."""
        wanted = list(set(digests))
        found: dict[bytes, bytes] = {}
        with self._lock:
            for at in range(0, len(wanted), 500):
                part = wanted[at : at + 500]
                marks = ",".join("?" * len(part))
                found.update(self._table.execute(f"SELECT digest, symbols FROM files WHERE digest IN ({marks})", part))  # noqa: S608 - only question marks
        return found

    def store(self, parsed: dict[bytes, list[Symbol]]) -> None:
        """Store parsed symbols."""
        now = int(time.time())
        rows = [(digest, encoded(symbols), now) for digest, symbols in parsed.items()]
        with self._lock, self._table:
            self._table.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)
            (count,) = self._table.execute("SELECT count(*) FROM files").fetchone()
            if count > _MAX_FILES:
                self._table.execute(
                    "DELETE FROM files WHERE digest IN (SELECT digest FROM files ORDER BY stored LIMIT ?)",
                    (count // 4,),
                )

    def close(self) -> None:
        with self._lock:
            self._table.close()

    def _opened(self) -> sqlite3.Connection:
        try:
            return self._connected()
        except sqlite3.DatabaseError:
            # A damaged index is discarded, because everything in it can be parsed again.
            self._path.unlink(missing_ok=True)
            return self._connected()

    def _connected(self) -> sqlite3.Connection:
        self._path.touch(mode=0o600)
        table = sqlite3.connect(self._path, check_same_thread=False, timeout=10)
        table.execute("PRAGMA journal_mode = WAL")
        table.execute("PRAGMA synchronous = OFF")
        table.execute("PRAGMA cache_size = -2000")
        table.execute(
            "CREATE TABLE IF NOT EXISTS files (digest BLOB PRIMARY KEY, symbols BLOB NOT NULL, stored INTEGER NOT NULL) "
            "WITHOUT ROWID"
        )
        return table


def encoded(symbols: list[Symbol]) -> bytes:
    return json.dumps(symbols, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def decoded(raw: bytes) -> list[Symbol]:
    return [Symbol(*fields) for fields in json.loads(raw)]
