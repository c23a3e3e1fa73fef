"""tunnels.json: the last state of the tunnel, for other processes to read."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from computer_linker.config.schema import TunnelName
from computer_linker.config.store import write_whole
from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.json_text import read_json
from computer_linker.system import is_running

FILE_NAME = "tunnels.json"
_MAX_BYTES = 200_000
State = Literal["starting", "running", "reconnecting", "waiting", "failed", "refused", "stopped", "lost"]
"""`reconnecting`: the program runs and reconnects by itself.
`waiting`: it ended and is tried again at `retryAt`. `refused`: it may not or cannot be opened as configured."""


class TunnelRecord(Model):
    """The state of the tunnel at `since`."""

    schema_version: Literal[1] = 1
    provider: TunnelName
    state: State
    public_url: str | None = None
    tunnel_id: str | None = None
    since: str
    restarts: int = 0
    last_error: Annotated[str, Field(max_length=1000)] | None = None
    hint: Annotated[str, Field(max_length=1000)] | None = None
    retry_at: str | None = None
    port: int | None = None
    pid: int | None = None
    pid_started: int | None = None
    service_pid: int
    service_started: int | None = None
    output: list[str] = []

    @property
    def is_open(self) -> bool:
        return self.state in ("running", "reconnecting")


class TunnelState(Model):
    """The tunnel in short; `stopped` without a provider when there never was one."""

    provider: TunnelName | None
    state: State
    public_url: str | None
    tunnel_id: str | None = None
    since: str | None = None
    restarts: int = 0
    last_error: str | None = None
    hint: str | None = None
    retry_at: str | None = None


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def save(home: Path, record: TunnelRecord) -> None:
    """Write it atomically."""
    write_whole(home, FILE_NAME, json.dumps(record.to_wire(), indent=1).encode() + b"\n")


def kept(home: Path) -> bytes | None:
    """The file as it is, for `put_back`; None where there is none."""
    try:
        return (home / FILE_NAME).read_bytes()
    except FileNotFoundError:
        return None


def put_back(home: Path, before: bytes | None) -> None:
    """Make the file what it was."""
    if before is None:
        (home / FILE_NAME).unlink(missing_ok=True)
    else:
        write_whole(home, FILE_NAME, before)


def read(home: Path) -> TunnelRecord | None:
    """The current state: a tunnel whose service has ended is `lost`. None when there never was one."""
    try:
        raw = (home / FILE_NAME).read_bytes()
        record = TunnelRecord.from_wire(read_json(raw[:_MAX_BYTES]))
    except (OSError, InvalidRequest, ValidationError):
        return None
    if record.state in ("stopped", "refused", "failed") or (
        record.service_started is not None and is_running(record.service_pid, record.service_started)
    ):
        return record
    return record.model_copy(
        update={
            "state": "lost",
            "public_url": None,
            "pid": None,
            "retry_at": None,
            "last_error": "The service ended without closing it; the tunnel ended with the service.",
        }
    )


def shown(record: TunnelRecord | None) -> TunnelState:
    """The state for `status`, `doctor` and clients, without processes and output."""
    if record is None:
        return TunnelState(provider=None, state="stopped", public_url=None)
    return TunnelState(**{name: getattr(record, name) for name in TunnelState.model_fields})
