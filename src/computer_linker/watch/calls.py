"""The calls on the screen: the history's records joined by operation, each as one row."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from computer_linker.audit.parts import is_part
from computer_linker.audit.wording import described
from computer_linker.config.load import load
from computer_linker.model.history import HistoryEvent

_MOST = 2000
_EMPTY: dict[str, Any] = {name: None for name in HistoryEvent.__annotations__ if name != "machine"} | {
    "startedAt": "", "scope": "", "op": "", "outcome": "running",
}  # fmt: skip


class Call:
    """One operation, as far as its records have come."""

    def __init__(self, operation_id: str) -> None:
        self.event = cast("HistoryEvent", {**_EMPTY, "operationId": operation_id, "summary": {}})
        self._settle(is_running=False)

    def take(self, record: dict[str, Any], *, is_running: bool) -> None:
        """Join a record of the feed, or an event of the history."""
        known = {name: value for name, value in record.items() if name in _EMPTY and value is not None}
        summary = {**self.event["summary"], **(record.get("summary") or {})}
        self.event = cast("HistoryEvent", {**self.event, **known, "summary": summary})
        self._settle(is_running=is_running)

    def _settle(self, *, is_running: bool) -> None:
        event = self.event
        if event["ok"] is None:
            # Without an outcome, and not running: its service ended before it did.
            event["outcome"] = "running" if is_running else "unknown"
        elif event["outcome"] in ("running", "unknown"):
            event["outcome"] = "done" if event["ok"] else "refused" if event["decision"] == "deny" else "failed"
        self.row = described(event)

    def set_running(self, *, is_running: bool) -> None:
        if self.event["ok"] is None and is_running != self.is_running:
            self._settle(is_running=is_running)

    @property
    def id(self) -> str:
        return self.event["operationId"]

    @property
    def is_running(self) -> bool:
        return self.event["outcome"] == "running"

    @property
    def is_owners(self) -> bool:
        return (self.event["principal"] or "").startswith("cli:")

    @property
    def at(self) -> str:
        """The local time of day; the day for another one than today."""
        try:
            then = datetime.fromisoformat(self.event["startedAt"]).astimezone()
        except ValueError:
            return self.event["startedAt"][:8]
        return then.strftime("%H:%M:%S" if then.date() == datetime.now(UTC).astimezone().date() else "%d %b")

    def matches(self, words: list[str]) -> bool:
        """Whether every word is in what the row shows, or in its names on the wire."""
        event, row = self.event, self.row
        text = f"{row.who} {row.what} {row.outcome} {event['op']} {event['scope']} {event['operationId']}".lower()
        return all(word in text for word in words)


class Calls:
    """Calls by operation. Ids sort by time; above a bound the oldest are dropped."""

    def __init__(self) -> None:
        self.by_id: dict[str, Call] = {}
        self.running: frozenset[str] = frozenset()
        """The operations that the service has under way."""

    def set_running(self, identifiers: Iterable[str]) -> None:
        """Take what the service has under way; any other call without an outcome has none any more."""
        self.running = frozenset(identifiers)
        for call in self.by_id.values():
            call.set_running(is_running=call.id in self.running)

    def take(self, record: dict[str, Any]) -> None:
        """Join a record to its call."""
        identifier = record.get("operationId")
        if not isinstance(identifier, str):
            return
        call = self.by_id.setdefault(identifier, Call(identifier))
        call.take(record, is_running=identifier in self.running or record.get("kind") == "intent")
        if len(self.by_id) > _MOST:
            for oldest in sorted(self.by_id)[: _MOST // 10]:
                del self.by_id[oldest]

    def newest_first(self, words: list[str]) -> list[Call]:
        """The calls whose rows contain each of these texts, but those that the row of another one shows."""
        calls = (call for _, call in sorted(self.by_id.items(), reverse=True) if call.matches(words))
        return [call for call in calls if not (is_part(call.event) and call.event["parent"] in self.by_id)]

    def clients(self) -> list["Client"]:
        """The clients that made these calls, the one with the newest call first."""
        found: dict[tuple[str, str], Client] = {}
        for _, call in sorted(self.by_id.items()):
            if not call.is_owners:
                client = Client(call.row.who, call.event["principal"] or "")
                found.setdefault((client.name, client.principal), client).add(call)
        return sorted(found.values(), key=lambda client: client.last_id, reverse=True)


@dataclass(slots=True)
class Client:
    """A client by its calls, over all of its connections."""

    name: str
    principal: str
    calls: int = 0
    failed: int = 0
    running: int = 0
    last_at: str = ""
    last_id: str = ""
    scopes: set[str] = field(default_factory=set)
    connections: set[str] = field(default_factory=set)

    def add(self, call: Call) -> None:
        self.calls += 1
        self.failed += call.event["ok"] is False
        self.running += call.is_running
        self.last_at, self.last_id = call.at, call.id
        self.scopes |= {call.row.scope} - {""}
        self.connections |= {call.event["connection"] or ""} - {""}


# Opens what a row is about: a file in the pager, a page or picture in the desktop's own program.


def file_of(home: Path, call: Call) -> Path | None:
    """The file a call was about, in the first root of its scope that has one."""
    scope, target = load(home).scope(call.event["scope"]), call.event["target"]
    if scope is None or not target:
        return None
    for root in scope.roots:
        path = Path(root) / target
        # A pipe or a device would not end; a link may lead anywhere, and is the owner's to follow by hand.
        if path.is_file() and not path.is_symlink():
            return path
    return None


def pager_of(path: Path) -> tuple[list[str], dict[str, str]]:
    """The command that shows a file, and its environment. The file is a client's: nothing in it is executed."""
    named = os.environ.get("PAGER", "").split()
    program = named if named and shutil.which(named[0]) else ["less"] if shutil.which("less") else ["more"]
    return [*program, os.fspath(path)], {**os.environ, "LESSSECURE": "1", "LESSOPEN": "", "LESS": ""}


def desktop_command(address: str) -> Sequence[str] | None:
    """The command that opens an address or a picture on this desktop; None over ssh and without one."""
    has_desktop = any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    program = shutil.which("xdg-open") or shutil.which("open")
    return [program, address] if has_desktop and program and "SSH_CONNECTION" not in os.environ else None


def open_on_desktop(command: Sequence[str]) -> None:
    """Start it without waiting, and without its output on the screen."""
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
