"""Text search: collects hits from an engine's records into ordered pages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from computer_linker.providers.search.query import Hit, Position, position_of
from computer_linker.providers.search.records import Record

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
            elif self.visible(record.path):
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
