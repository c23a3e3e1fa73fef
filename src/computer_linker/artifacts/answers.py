"""agent-browser's own answers as artifacts: one answer, or the list that a batch gives. Only `path` ever names a file."""

import json
from typing import Any

from computer_linker.artifacts.kinds import ProofKind, kind_named
from computer_linker.artifacts.manifest import MAX_ENTRIES, Entry
from computer_linker.errors import InvalidRequest

_ENDINGS: dict[str, ProofKind] = {
    "png": "screenshot", "jpg": "screenshot", "jpeg": "screenshot", "webp": "screenshot", "webm": "video_recording",
    "mp4": "video_recording", "har": "network_log", "pdf": "document",
}  # fmt: skip
_COUNTS: dict[str, ProofKind] = {
    "requestCount": "network_log",
    "eventCount": "browser_trace",
    "capturedFrames": "video_recording",
}
"""Numbers that say what a file is, whatever it is called."""
_TEXTS: dict[str, ProofKind] = {
    "messages": "console_logs", "errors": "console_logs", "snapshot": "accessibility_tree", "text": "browser_verification",
}  # fmt: skip


def is_answer(payload: Any) -> bool:
    """True for what agent-browser prints, and for no manifest."""
    if type(payload) is list:
        return bool(payload) and all(type(step) is dict and "success" in step and "result" in step for step in payload)
    return type(payload) is dict and "success" in payload and "data" in payload


def entries_of(payload: Any) -> list[Entry]:
    """What the answers hold. Raises InvalidRequest when none of them holds anything to keep."""
    steps = payload if type(payload) is list else [payload]
    if len(steps) > MAX_ENTRIES:
        raise InvalidRequest(f"At most {MAX_ENTRIES} answers are taken at once.")
    found: list[Entry] = []
    for step in steps:
        data = step.get("result", step.get("data"))
        if step["success"] is True and type(data) is dict:
            found += _held(data)
    if not found:
        raise InvalidRequest(
            "The answers of agent-browser hold nothing to keep: no file, console, errors, snapshot or text."
        )
    return found


def _held(data: dict[str, Any]) -> list[Entry]:
    path = data.get("path")
    found = [Entry(_kind_of(path, data), path.rpartition("/")[2][:200], path=path)] if type(path) is str else []
    for name, kind in _TEXTS.items():
        value = data.get(name)
        if type(value) is str and value:
            found.append(Entry(kind, name, text=value))
        elif type(value) is list and value:
            found.append(Entry(kind, name, text=json.dumps(value, ensure_ascii=False, indent=1)))
    return found


def _kind_of(path: str, data: dict[str, Any]) -> ProofKind:
    for name, kind in _COUNTS.items():
        if name in data:
            return kind
    ending = path.rpartition(".")[2].lower()
    return _ENDINGS.get(ending) or kind_named(ending) or "document"
