"""Text search: collects hits from an engine's records into ordered pages."""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from computer_linker.providers.search.query import Hit, Position, position_of
from computer_linker.system import slashed

# Parses ripgrep's JSON lines as a stream: only needed fields are decoded, and overlong lines are not buffered.

_MAX_RECORD = 1 << 20
_HEAD = 1 << 14
# A quote inside a JSON string is always escaped, so these can only end a string.
_AFTER_TEXT = re.compile(rb'"\},"line_number":(\d+),"absolute_offset":(\d+),')
_AFTER_MATCH = re.compile(rb'"\},"start":(\d+),"end":(\d+)')
_OVERLAP = 64


@dataclass(slots=True)
class Record:
    """One line of a file as the engine reported it, `offset` bytes into it; `start` is the byte where the match begins."""

    kind: Literal["match", "context", "end"]
    path: bytes
    line: int = 0
    text: bytes = b""
    start: int = 0
    is_binary: bool = False
    is_cut: bool = False
    offset: int = 0


def records(read: Callable[[], bytes]) -> Iterator[Record]:
    """Every match, context line and end of file, in order of arrival."""
    pending = b""
    while piece := read():
        pending += piece
        has_line = b"\n" in piece
        if not has_line and len(pending) > _MAX_RECORD:
            record, pending = _long_record(pending, read)
            has_line = True
            if record is not None:
                yield record
        if has_line:
            *lines, pending = pending.split(b"\n")
            for line in lines:
                record = _record(line)
                if record is not None:
                    yield record


def _record(line: bytes) -> Record | None:
    if line.startswith((b'{"type":"match"', b'{"type":"context"')):
        value = json.loads(line)
        data = value["data"]
        found = data["submatches"]
        start = found[0]["start"] if found else 0
        return Record(
            value["type"],
            _path(data["path"]),
            data["line_number"],
            _bytes(data["lines"]),
            start,
            offset=data["absolute_offset"],
        )
    if line.startswith(b'{"type":"end"'):
        data = json.loads(line)["data"]
        return Record("end", _path(data["path"]), is_binary=data["binary_offset"] is not None)
    return None


def _long_record(pending: bytes, read: Callable[[], bytes]) -> tuple[Record | None, bytes]:
    """Parse an overlong record: its head, line number and first match; the rest is skipped."""
    head = pending[:_HEAD]
    line, rest = _seek(_AFTER_TEXT, pending, read)
    start, rest = (None, b"") if line is None else _seek(_AFTER_MATCH, rest, read)
    while b"\n" not in rest:
        rest = read()
        if not rest:
            break
    left = rest.partition(b"\n")[2]
    opening = re.match(rb'\{"type":"(match|context)","data":\{"path":(\{.*?\}),"lines":\{"(text|bytes)":"', head)
    if opening is None or line is None:
        return None, left
    text = _unescaped(head[opening.end() :]) if opening[3] == b"text" else b""
    kind: Literal["match", "context"] = "match" if opening[1] == b"match" else "context"
    path = _path(json.loads(opening[2]))
    at = int(start[1]) if start else 0
    return Record(kind, path, int(line[1]), text, at, is_cut=True, offset=int(line[2])), left


def _seek(wanted: re.Pattern[bytes], pending: bytes, read: Callable[[], bytes]) -> tuple[re.Match[bytes] | None, bytes]:
    while True:
        found = wanted.search(pending)
        if found is not None:
            return found, pending[found.end() :]
        piece = read()
        if not piece:
            return None, b""
        pending = pending[-_OVERLAP:] + piece


def _unescaped(raw: bytes) -> bytes:
    for cut in range(8):
        try:
            text = json.loads(b'"' + raw[: len(raw) - cut] + b'"')
        except ValueError:
            continue
        return str(text).encode("utf-8", "surrogatepass")
    return b""


def _path(value: dict[str, Any]) -> bytes:
    path = os.fsencode(value["text"]) if "text" in value else base64.b64decode(value["bytes"])
    return slashed(path).removeprefix(b"./")


def _bytes(value: dict[str, Any]) -> bytes:
    if "text" in value:
        return str(value["text"]).encode("utf-8", "surrogatepass")
    return base64.b64decode(value["bytes"])


_PREVIEW = 300
_LEAD = 100
_MAX_KEPT_CHARS = 4_000_000


@dataclass(slots=True)
class Gathered:
    """The result of one engine run."""

    hits: list[Hit] = field(default_factory=list)
    binary_files: list[bytes] = field(default_factory=list)
    is_complete: bool = True


@dataclass(slots=True)
class Gatherer:
    """Collects visible hits after `after` until there are `most`, with their context lines."""

    visible: Callable[[bytes], bool]
    confirmed: Callable[[Record], bool]
    after: Position | None
    most: int
    before_lines: int
    after_lines: int
    _found: Gathered = field(default_factory=Gathered)
    _file: list[tuple[int, str]] = field(default_factory=list)
    _hits: list[Hit] = field(default_factory=list)
    _chars: int = 0

    def gather(self, records: Iterator[Record]) -> Gathered:
        """Read until the engine ends (`is_complete`) or there are enough hits."""
        for record in records:
            if record.kind == "end":
                self._end_file(is_binary=record.is_binary, path=record.path)
            elif self._is_enough(record):
                self._found.is_complete = False
                break
            elif self.visible(record.path) and self.confirmed(record):
                self._take(record)
        self._end_file(is_binary=False, path=b"")
        return self._found

    def _take(self, record: Record) -> None:
        if record.kind == "context":
            self._keep_line(record.line, _cut(record.text))
            return
        column, preview = _preview(record)
        self._keep_line(record.line, preview)
        if self.after is None or position_of(record.path, record.line) > self.after:
            self._chars += len(preview)
            self._hits.append(Hit(record.path, record.line, column, preview))

    def _keep_line(self, line: int, text: str) -> None:
        if self.before_lines or self.after_lines:
            self._file.append((line, text))
            if len(self._file) > 4096 and not self._hits:
                del self._file[:2048]

    def _is_enough(self, record: Record) -> bool:
        if self._chars > _MAX_KEPT_CHARS:
            return True
        if len(self._found.hits) + len(self._hits) < self.most:
            return False
        # The last hit still waits for its context lines.
        return (
            not self._hits or record.path != self._hits[-1].path or record.line > self._hits[-1].line + self.after_lines
        )

    def _end_file(self, *, is_binary: bool, path: bytes) -> None:
        if is_binary and self.visible(path):
            self._found.binary_files.append(path)
        elif self._hits:
            if self._file:
                lines = dict(self._file)
                self._chars += sum(map(len, lines.values()))
                for hit in self._hits:
                    hit.before = _between(lines, hit.line - self.before_lines, hit.line)
                    hit.after = _between(lines, hit.line + 1, hit.line + 1 + self.after_lines)
            self._found.hits += self._hits
        self._hits, self._file = [], []


def _between(lines: dict[int, str], first: int, end: int) -> list[str]:
    return [lines[number] for number in range(first, end) if number in lines]


def _preview(record: Record) -> tuple[int, str]:
    """The column of the match in characters, and the line around it."""
    text = record.text.rstrip(b"\r\n")
    before = text[: record.start].decode("utf-8", "replace")
    column = len(before) + 1
    if record.is_cut and record.start > len(text):
        return record.start + 1, _cut(text) + "…"
    line = text.decode("utf-8", "replace")
    if len(line) <= _PREVIEW and not record.is_cut:
        return column, line
    first = max(0, min(column - 1 - _LEAD, len(line) - _PREVIEW))
    shown = line[first : first + _PREVIEW]
    ends = record.is_cut or first + _PREVIEW < len(line)
    return column, ("…" if first else "") + shown + ("…" if ends else "")


def _cut(text: bytes) -> str:
    line = text[: _PREVIEW * 4].rstrip(b"\r\n").decode("utf-8", "replace")
    return line if len(line) <= _PREVIEW else line[:_PREVIEW] + "…"
