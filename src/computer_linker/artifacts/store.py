"""Where artifacts lie: bytes once by digest, facts in a small database, bounds that hold whatever comes."""

import hashlib
import os
import secrets
import shutil
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from computer_linker.errors import LimitExceeded, NotFound
from computer_linker.model.artifact import Artifact

MAX_BYTES = 64 * 1024 * 1024
_SWEEP_EVERY_S = 3600.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS artifacts (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, sha256 TEXT NOT NULL, size INTEGER NOT NULL, media_type TEXT NOT NULL,
  title TEXT NOT NULL, scope TEXT NOT NULL, session TEXT NOT NULL, operation TEXT NOT NULL, label TEXT NOT NULL,
  backend TEXT NOT NULL, created_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS by_scope ON artifacts (scope, created_at);
CREATE INDEX IF NOT EXISTS by_digest ON artifacts (sha256);
PRAGMA user_version = 1;
"""
_FIELDS = "id, kind, sha256, size, media_type, title, scope, session, operation, label, backend, created_at"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept: of one artifact, of one scope, for how long, and how much of the disk is left to others."""

    max_bytes: int = MAX_BYTES
    scope_bytes: int = 512 * 1024 * 1024
    scope_count: int = 2000
    keep_s: float = 30 * 24 * 3600
    free_bytes: int = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Asked:
    """Which artifacts are wanted; what is None is not asked about."""

    scope: str | None = None
    kind: str | None = None
    label: str | None = None
    session: str | None = None
    before: float | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose an artifact is."""

    scope: str
    session: str
    operation: str
    label: str = ""
    backend: str = ""


class ArtifactStore:
    """A private folder of objects and one table. Used from worker threads, one at a time (the broker sees to that)."""

    def __init__(self, folder: Path, bounds: Bounds = Bounds(), *, only_to_read: bool = False) -> None:
        self._folder = folder
        self._bounds = bounds
        self._swept = 0.0
        self._newest = 0.0
        place = folder / "artifacts.db"
        if only_to_read:
            # Beside a service that writes: nothing is made, changed or waited for.
            self._db = sqlite3.connect(f"{place.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
            return
        (folder / "objects").mkdir(mode=0o700, parents=True, exist_ok=True)
        self._db = sqlite3.connect(place, check_same_thread=False, isolation_level=None)
        self._db.executescript("PRAGMA journal_mode=WAL;" + _SCHEMA)
        self._newest = float(self._db.execute("SELECT coalesce(max(created_at), 0) FROM artifacts").fetchone()[0])

    def close(self) -> None:
        self._db.close()

    def add(self, content: bytes, kind: str, media: str, title: str, owner: Owner) -> Artifact:
        """Keep the bytes and the facts. The oldest of the scope make way when its bounds are reached."""
        limit = self._bounds.max_bytes
        if len(content) > limit:
            raise LimitExceeded(f"An artifact is at most {limit} bytes.", limitBytes=limit)
        if time.time() - self._swept > _SWEEP_EVERY_S:
            self.sweep(time.time())
        digest = hashlib.sha256(content).hexdigest()
        self._make_room(owner.scope, len(content))
        self._leave_room_on_disk(len(content))
        self._write_object(digest, content)
        made = Artifact(
            id="art_" + secrets.token_hex(12), kind=kind, sha256=digest, size=len(content), media_type=media,
            title=title, scope=owner.scope, session=owner.session, operation=owner.operation, label=owner.label,
            backend=owner.backend, created_at=self._now(),
        )  # fmt: skip
        values = (
            made.id, kind, digest, made.size, media, title, made.scope, made.session, made.operation, made.label,
            made.backend, made.created_at,
        )  # fmt: skip
        self._db.execute(f"INSERT INTO artifacts ({_FIELDS}) VALUES ({','.join('?' * 12)})", values)  # noqa: S608  # constant names
        return made

    def find(self, artifact_id: str, scope: str | None) -> Artifact:
        """One artifact of this scope; another scope's is as if it were not there. None is the owner, who sees all."""
        row = self._db.execute(
            f"SELECT {_FIELDS} FROM artifacts WHERE id = ? AND scope = coalesce(?, scope)",  # noqa: S608  # constant names
            (artifact_id, scope),
        ).fetchone()
        if row is None:
            raise NotFound("There is no artifact of this id in this scope.")
        return _artifact(row)

    def listed(self, asked: Asked, limit: int) -> list[Artifact]:
        """The newest first."""
        wanted = "created_at < ?"
        values: list[object] = [asked.before if asked.before is not None else float("inf")]
        for name in ("scope", "kind", "label", "session"):
            value = getattr(asked, name)
            if value is not None:
                wanted += f" AND {name} = ?"
                values.append(value)
        query = f"SELECT {_FIELDS} FROM artifacts WHERE {wanted} ORDER BY created_at DESC LIMIT ?"  # noqa: S608
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
        """How many artifacts and bytes a scope holds."""
        row = self._db.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM artifacts WHERE scope = ?", (scope,)
        ).fetchone()
        return int(row[0]), int(row[1])

    def sweep(self, now: float) -> int:
        """Drop what is older than the retention, and bytes that belong to nothing; how many artifacts went."""
        self._swept = now
        oldest = now - self._bounds.keep_s
        old = self._db.execute("SELECT id, sha256 FROM artifacts WHERE created_at < ?", (oldest,)).fetchall()
        for artifact_id, digest in old:
            self._drop(artifact_id, digest)
        known = {row[0] for row in self._db.execute("SELECT DISTINCT sha256 FROM artifacts")}
        for path in (self._folder / "objects").glob("*/*"):
            # A service that was killed between the bytes and their row left these.
            if path.name not in known:
                path.unlink(missing_ok=True)
        return len(old)

    def _make_room(self, scope: str, size: int) -> None:
        bounds = self._bounds
        count, total = self.size_of(scope)
        oldest = self._db.execute(
            "SELECT id, sha256, size FROM artifacts WHERE scope = ? ORDER BY created_at", (scope,)
        )
        rows = oldest.fetchall() if count >= bounds.scope_count or total + size > bounds.scope_bytes else []
        for artifact_id, digest, freed in rows:
            if count < bounds.scope_count and total + size <= bounds.scope_bytes:
                break
            self._drop(artifact_id, digest)
            count, total = count - 1, total - freed

    def _leave_room_on_disk(self, size: int) -> None:
        if shutil.disk_usage(self._folder).free - size < self._bounds.free_bytes:
            raise LimitExceeded("The disk is nearly full; nothing more is kept.", freeBytes=self._bounds.free_bytes)

    def _now(self) -> float:
        """A time that is later than every other here, so that it can say where a page of a list ends."""
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
                os.fsync(fd)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _artifact(row: tuple[object, ...]) -> Artifact:
    return Artifact(**dict(zip(_FIELDS.split(", "), row, strict=True)))  # type: ignore[arg-type]  # our own table
