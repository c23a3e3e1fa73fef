"""Parses the output of agent-browser and similar tools: a list of entries, or an object with well-known fields."""

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from computer_linker.artifacts.kinds import ProofKind, kind_named, normalised_kind
from computer_linker.artifacts.store import Stated
from computer_linker.errors import InvalidRequest

MAX_ENTRIES = 200
_MAX_DESCRIPTION = 2000
_MAX_METADATA = 8000
_MIME = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,63}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,63}(;[ -~]{0,80})?")
_ENTRY_FIELDS = frozenset(
    {"kind", "title", "description", "path", "uri", "text", "json", "mimeType", "rawType", "metadata"}
)
_PATHS: dict[str, ProofKind] = {
    "screenshotPath": "screenshot", "imagePath": "screenshot", "videoPath": "video_recording", "tracePath": "browser_trace",
    "consoleLogsPath": "console_logs", "consoleLogPath": "console_logs", "verificationPath": "browser_verification",
    "harPath": "network_log", "pdfPath": "document",
}  # fmt: skip
_TEXTS: dict[str, ProofKind] = {
    "consoleLogs": "console_logs", "consoleLog": "console_logs", "verificationText": "browser_verification",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One artifact to store: a file inside the scope, or text."""

    kind: ProofKind
    title: str
    path: str | None = None
    text: str | None = None
    stated: Stated = field(default_factory=Stated)
    is_uri: bool = False
    """The path came as a `file:` URI."""


def parse_manifest(payload: Any) -> list[Entry]:
    """The entries of either form. Raises InvalidRequest for unknown fields, so that no path bypasses the path check."""
    if type(payload) is list:
        payload = {"artifacts": payload}
    if type(payload) is not dict:
        raise InvalidRequest("A manifest is a list of artifacts, or an object with known fields.")
    known = {"artifacts", *_PATHS, *_TEXTS}
    unknown = sorted(payload.keys() - known)
    if unknown:
        raise InvalidRequest(f"The manifest has an unknown field {unknown[0][:60]!r}.", known=sorted(known))
    entries = _entries(payload.get("artifacts", []))
    for name, kind in _PATHS.items():
        if name in payload:
            entries.append(Entry(kind, kind, path=_string(payload[name], name)))
    for name, kind in _TEXTS.items():
        if name in payload:
            entries.append(Entry(kind, kind, text=_string(payload[name], name)))
    if not entries:
        raise InvalidRequest("The manifest names no artifact.")
    return entries


def _entries(items: Any) -> list[Entry]:
    if type(items) is not list:
        raise InvalidRequest("`artifacts` is a list.")
    if len(items) > MAX_ENTRIES:
        raise InvalidRequest(f"A manifest has at most {MAX_ENTRIES} artifacts.")
    return [_entry(item) for item in items]


def _entry(item: Any) -> Entry:
    if type(item) is not dict:
        raise InvalidRequest("An artifact in a manifest is an object.")
    unknown = sorted(item.keys() - _ENTRY_FIELDS)
    if unknown:
        raise InvalidRequest(f"An artifact has an unknown field {unknown[0][:60]!r}.", known=sorted(_ENTRY_FIELDS))
    text = item.get("text")
    if text is None and item.get("json") is not None:
        text = json.dumps(item["json"], ensure_ascii=False)
    uri = item.get("uri")
    path = item.get("path") if uri is None else path_of_uri(_string(uri, "uri"))
    if (path is None) == (text is None) or (uri is not None and item.get("path") is not None):
        raise InvalidRequest("An artifact has exactly one of a path, a uri and text.")
    kind = normalised_kind(item.get("kind"), item.get("rawType"), item.get("title"), has_text=text is not None)
    title = item.get("title")
    return Entry(
        kind,
        title[:200] if type(title) is str else kind,
        path=None if path is None else _string(path, "path"),
        text=None if text is None else _string(text, "text"),
        stated=stated_of(item.get("description"), item.get("mimeType"), item.get("metadata")),
        is_uri=uri is not None,
    )


def path_of_uri(uri: str) -> str:
    """The path that a `file:` URI of this computer names. Raises InvalidRequest for any other: nothing is ever fetched."""
    try:
        parts = urlsplit(uri)
        path = unquote(parts.path, errors="strict") if parts.path.startswith("/") else ""
    except ValueError:
        raise InvalidRequest("The URI is not well formed.", field="uri") from None
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise InvalidRequest(
            f"A {parts.scheme or 'relative'} URI is not taken: this service fetches nothing. Give a file: URI of this computer, "
            "a path, or the text itself.",
            scheme=parts.scheme[:40],
        )
    if not path or "\0" in path:
        raise InvalidRequest("A file: URI names an absolute path.")
    return path


def stated_of(description: Any, mime_type: Any, metadata: Any) -> Stated:
    """What is stated about an artifact, bounded. Raises InvalidRequest for what is too long or of a wrong form."""
    if description is not None and (type(description) is not str or len(description) > _MAX_DESCRIPTION):
        raise InvalidRequest(f"`description` is a text of at most {_MAX_DESCRIPTION} characters.", field="description")
    if mime_type is not None and (type(mime_type) is not str or not _MIME.fullmatch(mime_type)):
        raise InvalidRequest("`mimeType` is a media type such as image/png.", field="mimeType")
    if metadata is not None and (type(metadata) is not dict or len(json.dumps(metadata)) > _MAX_METADATA):
        raise InvalidRequest(f"`metadata` is an object of at most {_MAX_METADATA} characters.", field="metadata")
    return Stated(description or "", mime_type or "", metadata or {})


def _string(value: Any, name: str) -> str:
    if type(value) is not str:
        raise InvalidRequest(f"`{name}` in the manifest must be a string.")
    return value


_ENDINGS: dict[str, ProofKind] = {
    "png": "screenshot", "jpg": "screenshot", "jpeg": "screenshot", "webp": "screenshot", "webm": "video_recording",
    "mp4": "video_recording", "har": "network_log", "pdf": "document",
}  # fmt: skip
_COUNTS: dict[str, ProofKind] = {
    "requestCount": "network_log",
    "eventCount": "browser_trace",
    "capturedFrames": "video_recording",
}
"""Numeric fields that identify a file's kind, whatever its name."""
_ANSWER_TEXTS: dict[str, ProofKind] = {
    "messages": "console_logs", "errors": "console_logs", "snapshot": "accessibility_tree", "text": "browser_verification",
}  # fmt: skip


def is_answer(payload: Any) -> bool:
    """True for agent-browser output, false for a manifest."""
    if type(payload) is list:
        return bool(payload) and all(type(step) is dict and "success" in step and "result" in step for step in payload)
    return type(payload) is dict and "success" in payload and "data" in payload


def entries_of(payload: Any) -> list[Entry]:
    """Return the artifacts in agent-browser output; only `path` names a file. Raises InvalidRequest when there are none."""
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
    for name, kind in _ANSWER_TEXTS.items():
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
