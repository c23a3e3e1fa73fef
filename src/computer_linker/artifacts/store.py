"""The artifact store: content-addressed files, metadata in SQLite, bounded in size and count."""

import hashlib
import json
import secrets
import shutil
import sqlite3
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from computer_linker.errors import LimitExceeded, NotFound
from computer_linker.model.artifact import Artifact
from computer_linker.model.principal import account_of
from computer_linker.system import os, sync

MAX_BYTES = 64 * 1024 * 1024
_SWEEP_EVERY_S = 3600.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS artifacts (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, sha256 TEXT NOT NULL, size INTEGER NOT NULL, media_type TEXT NOT NULL,
  title TEXT NOT NULL, scope TEXT NOT NULL, session TEXT NOT NULL, operation TEXT NOT NULL, label TEXT NOT NULL,
  backend TEXT NOT NULL, created_at REAL NOT NULL, principal TEXT NOT NULL DEFAULT '',
  description TEXT NOT NULL DEFAULT '', mime_type TEXT NOT NULL DEFAULT '', metadata TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX IF NOT EXISTS by_scope ON artifacts (scope, created_at);
CREATE INDEX IF NOT EXISTS by_digest ON artifacts (sha256);
PRAGMA user_version = 3;
"""
_ADDED = {"principal": "''", "description": "''", "mime_type": "''", "metadata": "'{}'"}
"""Columns that a table of an older version lacks, and their default."""
_FIELDS = (
    "id, kind, sha256, size, media_type, title, scope, session, operation, label, backend, created_at, principal, "
    "description, mime_type, metadata"
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits: of one artifact, of one scope, retention time, and free disk space."""

    max_bytes: int = MAX_BYTES
    scope_bytes: int = 512 * 1024 * 1024
    scope_count: int = 2000
    keep_s: float = 30 * 24 * 3600
    free_bytes: int = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter for artifacts; a field that is None matches all."""

    scope: str | None = None
    kind: str | None = None
    label: str | None = None
    session: str | None = None
    before: float | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of an artifact."""

    scope: str
    principal: str
    session: str
    operation: str
    label: str = ""
    backend: str = ""


@dataclass(frozen=True, slots=True)
class Stated:
    """What the caller stated about an artifact, stored as given; nothing is decided by it."""

    description: str = ""
    mime_type: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


class ArtifactStore:
    """A private folder of objects and one table. Used from worker threads, one at a time (the broker serializes)."""

    def __init__(self, folder: Path, bounds: Bounds = Bounds(), *, only_to_read: bool = False) -> None:
        self._folder = folder
        self._bounds = bounds
        self._swept = 0.0
        self._newest = 0.0
        self._fields = _FIELDS
        place = folder / "artifacts.db"
        if only_to_read:
            # Beside a running service: nothing is created, changed or waited for.
            self._db = sqlite3.connect(f"{place.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
            for name in self._missing_columns():
                self._fields = self._fields.replace(f", {name}", f", {_ADDED[name]} AS {name}")
            return
        (folder / "objects").mkdir(mode=0o700, parents=True, exist_ok=True)
        self._db = sqlite3.connect(place, check_same_thread=False, isolation_level=None)
        self._db.executescript("PRAGMA journal_mode=WAL;" + _SCHEMA)
        for name in self._missing_columns():
            self._db.execute(f"ALTER TABLE artifacts ADD COLUMN {name} TEXT NOT NULL DEFAULT {_ADDED[name]}")
        self._newest = float(self._db.execute("SELECT coalesce(max(created_at), 0) FROM artifacts").fetchone()[0])

    def close(self) -> None:
        self._db.close()

    def _missing_columns(self) -> list[str]:
        """What a table created by an older version lacks."""
        there = {row[1] for row in self._db.execute("PRAGMA table_info(artifacts)")}
        return [name for name in _ADDED if name not in there]

    def add(
        self, content: bytes, kind: str, media: str, title: str, owner: Owner, stated: Stated = Stated()
    ) -> Artifact:
        """Store bytes and metadata. The scope's oldest artifacts are deleted when its limits are reached."""
        limit = self._bounds.max_bytes
        if len(content) > limit:
            raise LimitExceeded(f"An artifact is at most {limit} bytes.", limitBytes=limit)
        if time.time() - self._swept > _SWEEP_EVERY_S:
            self.sweep(time.time())
        digest = hashlib.sha256(content).hexdigest()
        self._make_room(owner, len(content))
        self._leave_room_on_disk(len(content))
        self._write_object(digest, content)
        made = Artifact(
            id="art_" + secrets.token_hex(12), kind=kind, sha256=digest, size=len(content), media_type=media,
            title=title, scope=owner.scope, session=owner.session, operation=owner.operation, label=owner.label,
            backend=owner.backend, created_at=self._now(), principal=owner.principal, description=stated.description,
            mime_type=stated.mime_type, metadata=json.dumps(stated.metadata, ensure_ascii=False),
        )  # fmt: skip
        values = (
            made.id, kind, digest, made.size, media, title, made.scope, made.session, made.operation, made.label,
            made.backend, made.created_at, made.principal, made.description, made.mime_type, made.metadata,
        )  # fmt: skip
        self._db.execute(f"INSERT INTO artifacts ({_FIELDS}) VALUES ({','.join('?' * len(values))})", values)  # noqa: S608  # constant names
        return made

    def find(self, artifact_id: str, scope: str | None, principal: str | None = None) -> Artifact:
        """One artifact of this scope and principal; any other counts as missing. None stands for all of them."""
        row = self._db.execute(
            f"SELECT {self._fields} FROM artifacts"  # noqa: S608  # constant names
            " WHERE id = ? AND scope = coalesce(?, scope) AND principal = coalesce(?, principal)",
            (artifact_id, scope, principal),
        ).fetchone()
        if row is None:
            raise NotFound("There is no artifact of this id in this scope.")
        return _artifact(row)

    def listed(self, matching: Filter, limit: int) -> list[Artifact]:
        """The newest first."""
        condition = "created_at < ?"
        values: list[object] = [matching.before if matching.before is not None else float("inf")]
        for name in ("scope", "kind", "label", "session", "principal"):
            value = getattr(matching, name)
            if value is not None:
                condition += f" AND {name} = ?"
                values.append(value)
        query = f"SELECT {self._fields} FROM artifacts WHERE {condition} ORDER BY created_at DESC LIMIT ?"  # noqa: S608
        return [_artifact(row) for row in self._db.execute(query, [*values, limit])]

    def content(self, artifact: Artifact) -> bytes:
        """The bytes, checked against their digest."""
        try:
            content = self._object(artifact.sha256).read_bytes()
        except FileNotFoundError:
            content = b""
        if hashlib.sha256(content).hexdigest() != artifact.sha256:
            raise NotFound("The artifact's bytes are no longer what was kept.")
        return content

    def size_of(self, scope: str) -> tuple[int, int]:
        """The number of artifacts and bytes of a scope."""
        row = self._db.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM artifacts WHERE scope = ?", (scope,)
        ).fetchone()
        return int(row[0]), int(row[1])

    def sweep(self, now: float) -> int:
        """Delete what is older than the retention time, and orphaned objects; returns how many artifacts were deleted."""
        self._swept = now
        oldest = now - self._bounds.keep_s
        old = self._db.execute("SELECT id, sha256 FROM artifacts WHERE created_at < ?", (oldest,)).fetchall()
        for artifact_id, digest in old:
            self._drop(artifact_id, digest)
        known = {row[0] for row in self._db.execute("SELECT DISTINCT sha256 FROM artifacts")}
        for path in (self._folder / "objects").glob("*/*"):
            # Left by a service that was killed between writing the object and its row.
            if path.name not in known:
                path.unlink(missing_ok=True)
        return len(old)

    def _make_room(self, owner: Owner, size: int) -> None:
        """Delete the oldest of the principals that store the most, the new one included, so that none displaces another's."""
        bounds = self._bounds
        count, total = self.size_of(owner.scope)
        if count < bounds.scope_count and total + size <= bounds.scope_bytes:
            return
        rows = self._db.execute(
            "SELECT principal, id, sha256, size FROM artifacts WHERE scope = ? ORDER BY created_at", (owner.scope,)
        ).fetchall()
        held: dict[str, deque[tuple[str, str, int]]] = {}
        for principal, *row in rows:
            held.setdefault(account_of(principal), deque()).append((row[0], row[1], row[2]))
        counts = Counter({principal: len(mine) for principal, mine in held.items()})
        sizes = Counter({principal: sum(row[2] for row in mine) for principal, mine in held.items()})
        counts[account_of(owner.principal)] += 1
        sizes[account_of(owner.principal)] += size
        while any(held.values()) and (count >= bounds.scope_count or total + size > bounds.scope_bytes):
            usage = counts if count >= bounds.scope_count else sizes
            largest = max((one for one in held if held[one]), key=lambda one: usage[one])
            artifact_id, digest, freed = held[largest].popleft()
            self._drop(artifact_id, digest)
            counts[largest] -= 1
            sizes[largest] -= freed
            count, total = count - 1, total - freed

    def _leave_room_on_disk(self, size: int) -> None:
        if shutil.disk_usage(self._folder).free - size < self._bounds.free_bytes:
            raise LimitExceeded("The disk is nearly full; nothing more is kept.", freeBytes=self._bounds.free_bytes)

    def _now(self) -> float:
        """A timestamp later than every other here, so that it can mark the end of a page of a list."""
        self._newest = max(time.time(), self._newest + 1e-6)
        return self._newest

    def _drop(self, artifact_id: str, digest: str) -> None:
        self._db.execute("DELETE FROM artifacts WHERE id = ?", (artifact_id,))
        if self._db.execute("SELECT 1 FROM artifacts WHERE sha256 = ? LIMIT 1", (digest,)).fetchone() is None:
            self._object(digest).unlink(missing_ok=True)

    def _object(self, digest: str) -> Path:
        return self._folder / "objects" / digest[:2] / digest

    def _write_object(self, digest: str, content: bytes) -> None:
        path = self._object(digest)
        if path.exists():
            return
        path.parent.mkdir(mode=0o700, exist_ok=True)
        temporary = path.with_name(f".{secrets.token_hex(8)}")
        # 0600 and never executable, whatever it was.
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(content)
                file.flush()
                sync(fd)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _artifact(row: tuple[object, ...]) -> Artifact:
    return Artifact(**dict(zip(_FIELDS.split(", "), row, strict=True)))  # type: ignore[arg-type]  # our own table
