"""Storage of agent sessions: private, bounded files in the state folder, readable after a restart."""

import asyncio
import json
import logging
import re
import shutil
import time
from collections import deque
from pathlib import Path
from typing import Literal

import anyio.to_thread
from pydantic import ValidationError

from computer_linker.model.base import Model
from computer_linker.providers.agents.program import Event, clip, size_of
from computer_linker.system import os

Status = Literal["running", "completed", "failed", "stopped", "timed_out", "lost"]
Workflow = Literal["run", "plan", "review", "fix", "test", "continue"]
_ID = re.compile(r"[a-z]{1,16}_[0-9a-f]{24}")
_KEPT_SESSIONS = 200
_KEPT_TURNS = 40
_MAX_EVENTS = 4000
_MAX_EVENT_BYTES = 4 << 20


class ChangedFile(Model):
    path: str
    action: Literal["added", "modified", "deleted"]
    insertions: int
    deletions: int
    binary: bool = False


class DiffSummary(Model):
    """The differences of the folder before and after a turn."""

    changed_files: int
    insertions: int
    deletions: int
    files: list[ChangedFile]
    truncated: bool = False
    undoable: bool = False


class TurnProblem(Model):
    code: str
    message: str
    remedy: str


class Turn(Model):
    """One prompt and its outcome."""

    operation_id: str
    workflow: Workflow
    sandbox: Literal["read-only", "workspace-write"]
    prompt: str
    started_at: str
    first_event: int = 0
    status: Status = "running"
    ended_at: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    final_message: str = ""
    stdout: str = ""
    stderr: str = ""
    boundary: str = "none"
    usage: dict[str, int] = {}
    problem: TurnProblem | None = None
    diff_summary: DiffSummary | None = None
    warnings: list[str] = []
    before: str | None = None
    """The snapshot of the folder before the turn."""
    was_empty: list[str] = []
    view_id: str | None = None
    """The view that has its changes; None where it changed the folder."""


class Session(Model):
    """One conversation with one agent in one folder."""

    session_id: str
    agent: Literal["codex", "claude"]
    scope: str
    principal: str
    target: str
    created_at: str
    model: str | None = None
    thread_id: str | None = None
    client: str | None = None
    """The name that the client gave itself which began it."""
    turns: list[Turn] = []

    @property
    def last(self) -> Turn:
        return self.turns[-1]

    def with_turn(self, turn: Turn) -> "Session":
        """The session with a further turn; the oldest are dropped, and only the newest keeps its full output."""
        before = [_shortened(each) for each in self.turns[-_KEPT_TURNS + 1 :]]
        return self.model_copy(update={"turns": [*before, turn]})

    def with_last(self, turn: Turn) -> "Session":
        return self.model_copy(update={"turns": [*self.turns[:-1], turn]})


def session_folder(home: Path) -> Path:
    """Where the sessions of a service are stored."""
    return home / "agents" / "sessions"


def settled(session: Session) -> Session:
    """A stored session of a service that no longer runs: a turn recorded as running was lost with it."""
    if session.last.status != "running":
        return session
    return session.with_last(session.last.model_copy(update={"status": "lost"}))


def _shortened(turn: Turn) -> Turn:
    texts = {
        "stdout": "",
        "stderr": "",
        "prompt": clip(turn.prompt, 2000),
        "final_message": clip(turn.final_message, 4000),
    }
    return turn.model_copy(update=texts)


class Sessions:
    """One folder per session: its record, its events, and the newest diff."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def save(self, session: Session) -> None:
        """Write the record atomically."""
        place = self.place(session.session_id)
        place.mkdir(mode=0o700, exist_ok=True)
        _write(place / "session.json", json.dumps(session.to_wire(), ensure_ascii=False))

    def save_diff(self, session_id: str, patch: str) -> None:
        _write(self.place(session_id) / "diff.patch", patch)

    def diff(self, session_id: str) -> str:
        """The newest turn's diff; empty when there is none."""
        try:
            return (self.place(session_id) / "diff.patch").read_text(encoding="utf-8")
        except OSError:
            return ""

    def find(self, session_id: str) -> Session | None:
        """The session of this id. A turn that ran when an earlier service died is `lost`: it ended with it."""
        if not _ID.fullmatch(session_id):
            return None
        try:
            value = json.loads((self.place(session_id) / "session.json").read_bytes())
            return Session.from_wire(value)
        except (OSError, ValueError, ValidationError):
            return None

    def listed(self) -> list[Session]:
        """The stored sessions, the newest first; the oldest beyond the bound are deleted."""
        places = sorted(self._folder.iterdir(), key=_changed_ns, reverse=True)
        for old in places[_KEPT_SESSIONS:]:
            shutil.rmtree(old, ignore_errors=True)
        found = [self.find(place.name) for place in places[:_KEPT_SESSIONS]]
        return [session for session in found if session is not None]

    def place(self, session_id: str) -> Path:
        return self._folder / session_id


class EventLog:
    """The newest events of one session, numbered without gaps, stored in memory while it runs and in a private file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events: deque[tuple[Event, int]] = deque()
        self._bytes = 0
        self._written = 0
        self.end = 0
        self._file: int | None = None
        self._is_torn = False
        self._load()

    def add(self, event: Event) -> None:
        """Number the event, and store it in memory and in the file."""
        event["seq"] = self.end
        self._keep(event)
        if self._file is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self._path, flags, 0o600)
            if self._is_torn:
                os.write(self._file, b"\n")
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        self._written += os.write(self._file, line)
        if self._written > 3 * _MAX_EVENT_BYTES:
            self._compact()

    def since(self, cursor: int, max_bytes: int) -> tuple[list[Event], int, int]:
        """Events from a cursor on, the cursor after them, and how many before them are gone."""
        first = self._events[0][0]["seq"] if self._events else self.end
        dropped, room = max(0, first - cursor), max_bytes
        found: list[Event] = []
        for event, size in self._events:
            if event["seq"] < cursor:
                continue
            if found and size > room:
                break
            found.append(event)
            room -= size
        return found, found[-1]["seq"] + 1 if found else max(cursor, first), dropped

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _keep(self, event: Event) -> None:
        size = size_of(event)
        self._events.append((event, size))
        self._bytes += size
        self.end = event["seq"] + 1
        while len(self._events) > _MAX_EVENTS or self._bytes > _MAX_EVENT_BYTES:
            self._bytes -= self._events.popleft()[1]

    def _load(self) -> None:
        try:
            data = self._path.read_bytes()
        except OSError:
            return
        lines = data.splitlines()
        self._is_torn = not data.endswith(b"\n")
        self._written = len(data)
        for line in lines[-_MAX_EVENTS:]:
            try:
                event = json.loads(line)
            except ValueError:
                # The service died while it wrote this one.
                continue
            if isinstance(event, dict) and type(event.get("seq")) is int:
                self._keep(event)  # type: ignore[arg-type]  # our own file, written by `add`

    def _compact(self) -> None:
        self.close()
        text = "".join(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n" for event, _ in self._events)
        _write(self._path, text)
        self._written = len(text)


def _write(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    fresh.replace(path)


def _changed_ns(place: Path) -> int:
    try:
        return (place / "session.json").stat().st_mtime_ns
    except OSError:
        return 0


# Deletes old texts of agent sessions: prompts, messages and diffs are stored in plain text.

log = logging.getLogger(__name__)

KEEP_S = 30 * 86_400.0
_EVERY_S = 86_400.0


def forget_old(place: Path, now: float) -> int:
    """Remove sessions, and what the agents themselves logged, not used for thirty days; returns how many were removed."""
    gone = 0
    for session in _entries(place / "sessions"):
        if _age(session, now, inside="session.json") > KEEP_S:
            shutil.rmtree(session, ignore_errors=True)
            gone += 1
    # Codex and Claude store their own record of each conversation, one JSON-lines file each.
    for folder, _, names in os.walk(place / "homes"):
        for name in names:
            path = Path(folder, name)
            if name.endswith(".jsonl") and _age(path, now) > KEEP_S:
                path.unlink(missing_ok=True)
                gone += 1
    return gone


async def forget_daily(place: Path) -> None:
    """Remove old sessions now and every day, until cancelled."""
    while True:
        try:
            await anyio.to_thread.run_sync(forget_old, place, time.time())
        except OSError as error:
            log.warning("old agent sessions could not be removed: %s", error)
        await asyncio.sleep(_EVERY_S)


def _entries(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink()]
    except FileNotFoundError:
        return []


def _age(path: Path, now: float, inside: str = "") -> float:
    """Seconds since the last change; one without its record is as old as its folder."""
    for each in ([path / inside] if inside else []) + [path]:
        try:
            return now - each.lstat().st_mtime
        except FileNotFoundError:
            continue
    return 0.0
