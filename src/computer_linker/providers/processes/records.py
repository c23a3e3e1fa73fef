"""Records of long-running processes that survive the service: that they existed, never their output."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from computer_linker.model.base import Model

Status = Literal["running", "exited", "stopped", "lost"]
_KEPT = 200


class Record(Model):
    """One process as `command.list` reports it; of its command line, what `commandPreview` shows."""

    process_id: str
    scope: str
    principal: str
    kind: str
    command_preview: str
    name: str | None
    started_at: str
    ended_at: str | None = None
    status: Status
    exit_code: int | None = None
    signal: str | None = None
    boundary: str
    pty: bool
    client: str | None = None
    """The name that the client gave itself which started it."""


class Records:
    """Record files in the state folder, one per process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def folder(self) -> Path:
        return self._folder

    def load(self) -> list[Record]:
        """Load the records of earlier services. A process that ran when one died is `lost`: it ended with it."""
        found: list[Record] = []
        for path in sorted(self._folder.glob("proc_*.json"), key=lambda file: file.stat().st_mtime)[-_KEPT:]:
            try:
                record = Record.from_wire(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, ValidationError):
                path.unlink(missing_ok=True)
                continue
            if record.status == "running":
                record = record.model_copy(update={"status": "lost"})
                self.save(record)
            found.append(record)
        return found

    @staticmethod
    def read(folder: Path, process_id: str) -> Record | None:
        """One record as it is stored, changing nothing; None when there is none."""
        try:
            return Record.from_wire(json.loads((folder / f"{process_id}.json").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    def save(self, record: Record) -> None:
        """Write the record atomically."""
        path = self._path(record.process_id)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(record.to_wire()), encoding="utf-8")
        fresh.chmod(0o600)
        fresh.replace(path)

    def forget(self, process_id: str) -> None:
        self._path(process_id).unlink(missing_ok=True)

    def _path(self, process_id: str) -> Path:
        return self._folder / f"{process_id}.json"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
