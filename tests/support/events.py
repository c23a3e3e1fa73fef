"""Events for the tests of the history."""

from pathlib import Path
from typing import Any

from computer_linker.audit.history import HistoryFolder
from computer_linker.audit.views import Question, answer_now
from computer_linker.model.event import Event
from computer_linker.model.ids import new_ulid
from support.waiting import wait_for


def event(op: str = "file.read", target: str | None = "notes.txt", **parts: Any) -> Event:
    """An event as the dispatcher makes it."""
    given: dict[str, Any] = {
        "scope": "app",
        "principal": "local:tester",
        "session": "session-1",
        "connection": "connection-1",
        "client": "tests",
        "started_at": "2026-11-16T05:00:00.000Z",
        "ok": True,
        "duration_ms": 1.5,
        **parts,
    }
    return Event(operation_id=new_ulid(), op=op, target=target, **given)


def owners_history(home: Path, limit: int = 50) -> list[dict[str, Any]]:
    """The newest events of a state folder, as the owner sees them: everybody's."""
    events: list[dict[str, Any]] = answer_now(HistoryFolder(home / "audit"), Question("last", None, limit=limit))[
        "events"
    ]
    return events


def event_of(home: Path, op: str, *, ok: bool = True) -> dict[str, Any]:
    """The newest event of an operation, once its outcome is in the file: a service answers before it is."""

    def newest() -> list[dict[str, Any]]:
        found = [event for event in owners_history(home, 500) if event["op"] == op][:1]
        return [event for event in found if event["ok"] is ok]

    return wait_for(newest)[0]
