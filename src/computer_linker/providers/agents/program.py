"""The interface of an agent program: its command line, its output format, and its errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from typing_extensions import TypedDict

from computer_linker.providers.processes.confinement import OwnPlace

# Events of agent programs in one form, whatever the program.

EventType = Literal["thread", "turn", "message", "reasoning", "command", "file_change", "tool_call", "plan", "warning",
                    "error", "usage"]  # fmt: skip
Progress = Literal["running", "completed", "failed"]
MAX_TEXT = 16_384
MAX_OUTPUT = 8_192
_MAX_CHANGES = 200


class FileChange(TypedDict):
    path: str
    kind: str


class Event(TypedDict, total=False):
    """One event. `type` decides which of the other fields are set."""

    seq: int
    at: str
    type: EventType
    id: str
    status: Progress
    text: str
    threadId: str
    command: str
    output: str
    exitCode: int | None
    changes: list[FileChange]
    server: str
    tool: str
    usage: dict[str, int]


def clip(text: Any, limit: int = MAX_TEXT) -> str:
    """The text within a bound: its start and its end, and between them the size of what was omitted."""
    whole = text if isinstance(text, str) else ""
    if len(whole) <= limit:
        return whole
    half = limit // 2
    return f"{whole[:half]}\n[… {len(whole) - 2 * half} characters left out …]\n{whole[-half:]}"


def changes_of(found: list[tuple[str, str]]) -> list[FileChange]:
    """Changed files, at most as many as one event holds."""
    return [FileChange(path=path[:4096], kind=kind) for path, kind in found[:_MAX_CHANGES]]


def line_of(event: Event) -> str:
    """The event as a line for a person; empty for one without useful text."""
    match event.get("type"):
        case "message" | "plan" | "reasoning":
            return event.get("text", "")
        case "error" | "warning":
            return f"{event['type']}: {event.get('text', '')}"
        case "command" if event.get("status") != "running":
            return f"$ {event.get('command', '')}\n{event.get('output', '')}exit {event.get('exitCode')}"
        case "file_change" if event.get("status") != "running":
            return "\n".join(f"{change['kind']} {change['path']}" for change in event.get("changes", []))
        case "tool_call" if event.get("status") != "running":
            return f"{event.get('server', '')} {event.get('tool', '')}: {event.get('status', '')}".strip()
    return ""


def lines_of(events: list[Event]) -> str:
    """The events that have text, as lines for a person."""
    return "".join(f"{line}\n" for event in events if (line := line_of(event)))


def size_of(event: Event) -> int:
    """About how many bytes the event takes on the wire."""
    texts = (event.get("text", ""), event.get("output", ""), event.get("command", ""))
    return 120 + sum(len(text) for text in texts) + sum(len(change["path"]) + 30 for change in event.get("changes", []))


Mode = Literal["read-only", "workspace-write"]


@dataclass(frozen=True, slots=True)
class Ask:
    """How one turn is to be run. The prompt is not part of it: it is sent through standard input."""

    mode: Mode
    network: bool
    """Whether the agent's commands may use the network; the agent itself always reaches its model."""
    is_confined: bool
    """True when our sandbox confines the agent."""
    where: str
    """The working folder, as an absolute path without links."""
    model: str | None = None
    thread_id: str | None = None
    """The conversation to continue."""
    has_own_root: bool = False
    """The boundary gives it a file tree of its own, in which its home can hold other things."""


@dataclass(frozen=True, slots=True)
class Line:
    """The command, the variables the agent itself needs, and its own folder."""

    argv: list[str]
    env: dict[str, str]
    home: str
    """Where it stores its login and its conversations; only it writes there."""
    shown: tuple[OwnPlace, ...] = field(default=(), kw_only=True)
    """All that it sees of its home; empty for the home itself. So it finds no conversation of another caller."""
    holds: str
    """What the agent's own sandbox enforces on its commands; empty when it has none."""
    warnings: list[str] = field(default_factory=list)
    scripts: dict[str, str] = field(default_factory=dict)
    """Executable files that its own folder must hold, by name."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a turn did not succeed, and what would help."""

    code: Literal["login_required", "model_failed", "thread_not_found", "version", "failed"]
    message: str
    remedy: str


def not_understood(errors: str, install: str) -> Problem | None:
    """The problem of a program that rejects our arguments, or whose output is unknown."""
    low = errors.lower()
    if any(sign in low for sign in ("unexpected argument", "unknown option", "unrecognized option", NO_EVENTS.lower())):
        return Problem("version", errors[:600], f"The program is too old or too new for this service. {install}")
    return None


NO_EVENTS = "It ended without one event that is known here."


class Parser(Protocol):
    """Reads one turn's output, line by line."""

    def events(self, line: str) -> list[Event]:
        """The line's events; none for a line that is not of the program's event stream."""
        ...


class AgentProgram(Protocol):
    """An agent program. Stateless: one instance serves every run."""

    @property
    def name(self) -> str:
        """The program's name on the search path, and callers' name for it."""
        ...

    @property
    def oldest(self) -> tuple[int, ...]:
        """The oldest supported version."""
        ...

    @property
    def install(self) -> str:
        """How to get it."""
        ...

    def line(self, ask: Ask, environ: Mapping[str, str], state: Path) -> Line:
        """The command for one turn, without side effects. `state` is a private folder for this scope and agent."""
        ...

    def check(self, environ: Mapping[str, str]) -> None:
        """Raise ProviderUnavailable, with the remedy, where the program certainly cannot work."""
        ...

    def parser(self) -> Parser: ...

    def problem(self, errors: str, *, is_from_model: bool) -> Problem:
        """What the last error of a failed turn means. `is_from_model` when the program reported the turn itself as failed."""
        ...
