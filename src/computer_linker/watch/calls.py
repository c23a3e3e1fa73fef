"""The calls on the screen: the history's records joined by operation, each as one row."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

_MOST = 2000


@dataclass(slots=True)
class Call:
    """One operation, as far as its records have come."""

    operation_id: str
    started_at: str = ""
    op: str = ""
    scope: str = ""
    target: str | None = None
    command: str | None = None
    principal: str = ""
    client: str | None = None
    session: str = ""
    connection: str = ""
    ok: bool | None = None
    duration_ms: float | None = None
    error_code: str | None = None
    reason: str | None = None
    decision: str | None = None
    effect: str | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    is_running: bool = False

    @property
    def who(self) -> str:
        if self.principal.startswith("cli:"):
            return "owner"
        return self.client or self.principal or "unknown"

    @property
    def what(self) -> str:
        about = self.command or (self.target if self.target not in (None, "", ".") else None) or ""
        return f"{self.op} {about}".strip()

    @property
    def outcome(self) -> str:
        if self.ok is None:
            # Without an outcome, and not running: its service ended before it did.
            return "running" if self.is_running else "unknown"
        if self.ok:
            exit_code = self.summary.get("exitCode")
            return f"exit {exit_code}" if exit_code else "done"
        word = "refused" if self.decision == "deny" else "failed"
        return f"{word}: {(self.reason or self.error_code or '').replace('_', ' ')}".rstrip(": ")

    @property
    def took(self) -> str:
        if self.duration_ms is None:
            return ""
        if self.duration_ms < 1000:
            return f"{self.duration_ms:.0f}ms"
        return (
            f"{self.duration_ms / 1000:.1f}s" if self.duration_ms < 100_000 else f"{self.duration_ms / 60_000:.0f}min"
        )

    @property
    def at(self) -> str:
        """The local time of day; the day for another one than today."""
        try:
            then = datetime.fromisoformat(self.started_at).astimezone()
        except ValueError:
            return self.started_at[:8]
        return then.strftime("%H:%M:%S" if then.date() == datetime.now(UTC).astimezone().date() else "%d %b")

    def matches(self, words: list[str]) -> bool:
        """Whether every word is in what the row shows."""
        text = f"{self.who} {self.what} {self.outcome} {self.scope} {self.operation_id}".lower()
        return all(word in text for word in words)


_NAMES = {
    "startedAt": "started_at", "op": "op", "scope": "scope", "target": "target", "commandPreview": "command",
    "principal": "principal", "client": "client", "session": "session", "connection": "connection", "ok": "ok",
    "durationMs": "duration_ms", "errorCode": "error_code", "reason": "reason", "decision": "decision",
    "effect": "effect",
}  # fmt: skip


class Calls:
    """Calls by operation. Ids sort by time; above a bound the oldest are dropped."""

    def __init__(self) -> None:
        self.by_id: dict[str, Call] = {}
        self._running: frozenset[str] = frozenset()

    def set_running(self, identifiers: Iterable[str]) -> None:
        """Take what the service has under way; any other call without an outcome has none any more."""
        self._running = frozenset(identifiers)
        for call in self.by_id.values():
            call.is_running = call.ok is None and call.operation_id in self._running

    def take(self, record: dict[str, Any]) -> None:
        """Join a record of the feed, or an event of the history, to its call."""
        identifier = record.get("operationId")
        if not isinstance(identifier, str):
            return
        call = self.by_id.setdefault(identifier, Call(identifier))
        for name, attribute in _NAMES.items():
            if record.get(name) is not None:
                setattr(call, attribute, record[name])
        call.summary |= record.get("summary") or {}
        call.is_running = call.ok is None and (identifier in self._running or record.get("kind") == "intent")
        if len(self.by_id) > _MOST:
            for oldest in sorted(self.by_id)[: _MOST // 10]:
                del self.by_id[oldest]

    def newest_first(self, words: list[str]) -> list[Call]:
        """The calls whose rows have all these words."""
        return [call for _, call in sorted(self.by_id.items(), reverse=True) if call.matches(words)]

    def clients(self) -> list["Client"]:
        """Who was heard of in these calls, the one last heard of first."""
        found: dict[tuple[str, str], Client] = {}
        for _, call in sorted(self.by_id.items()):
            if call.principal.startswith("cli:"):
                continue
            client = found.setdefault((call.who, call.connection), Client(call.who, call.principal, call.connection))
            client.add(call)
        return sorted(found.values(), key=lambda client: client.last_id, reverse=True)


@dataclass(slots=True)
class Client:
    """One connection of a client, by its calls."""

    name: str
    principal: str
    connection: str
    calls: int = 0
    failed: int = 0
    running: int = 0
    last_at: str = ""
    last_id: str = ""
    scopes: set[str] = field(default_factory=set)

    def add(self, call: Call) -> None:
        self.calls += 1
        self.failed += call.ok is False
        self.running += call.is_running
        self.last_at, self.last_id = call.at, call.operation_id
        self.scopes |= {call.scope} - {""}


def seconds_until(moment: float) -> int:
    """Whole seconds until a time of the monotonic clock; never below zero."""
    return max(0, round(moment - time.monotonic()))
