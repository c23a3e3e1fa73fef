"""Parses ripgrep's JSON lines as a stream: only needed fields are decoded, and overlong lines are not buffered."""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

_MAX_RECORD = 1 << 20
_HEAD = 1 << 14
# A quote inside a JSON string is always escaped, so these can only end a string.
_AFTER_TEXT = re.compile(rb'"\},"line_number":(\d+),')
_AFTER_MATCH = re.compile(rb'"\},"start":(\d+),"end":(\d+)')
_OVERLAP = 64


@dataclass(slots=True)
class Record:
    """One line of a file as the engine reported it; `start` is the byte where the match begins."""

    kind: Literal["match", "context", "end"]
    path: bytes
    line: int = 0
    text: bytes = b""
    start: int = 0
    is_binary: bool = False
    is_cut: bool = False


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
        return Record(value["type"], _path(data["path"]), data["line_number"], _bytes(data["lines"]), start)
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
    return Record(kind, path, int(line[1]), text, int(start[1]) if start else 0, is_cut=True), left


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
    return path.removeprefix(b"./")


def _bytes(value: dict[str, Any]) -> bytes:
    if "text" in value:
        return str(value["text"]).encode("utf-8", "surrogatepass")
    return base64.b64decode(value["bytes"])
