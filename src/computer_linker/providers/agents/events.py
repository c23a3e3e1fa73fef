"""Events of agent programs in one form, whatever the program."""

from typing import Any, Literal

from typing_extensions import TypedDict

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
