"""Positions in texts: lines and columns as people count them, and UTF-16 offsets as the protocol does."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from computer_linker.errors import ExecutionFailed

_LINE_END = re.compile(r"\r\n|\n|\r")
_WORD = re.compile(r"[^\W\d]\w*|\d+", re.UNICODE)


class Position(NamedTuple):
    """A position of the protocol: line and UTF-16 offset, both from 0."""

    line: int
    character: int

    def to_wire(self) -> dict[str, int]:
        return {"line": self.line, "character": self.character}


class Lines:
    """A text by lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(text)]

    def __len__(self) -> int:
        return len(self._starts)

    def line(self, number: int) -> str:
        """A line without its end, from 0; empty past the last one."""
        return self.text[self._starts[number] : self._ends[number]] if 0 <= number < len(self) else ""

    def offset(self, position: Position) -> int:
        """The offset in the text; one past a line is its end, as the protocol has it."""
        if position.line >= len(self):
            return len(self.text)
        return self._starts[position.line] + characters(self.line(position.line), position.character)


def characters(line: str, units: int) -> int:
    """How many characters of a line make this many UTF-16 units."""
    if line.isascii():
        return min(units, len(line))
    count = 0
    for index, char in enumerate(line):
        if count >= units:
            return index
        count += 2 if ord(char) > 0xFFFF else 1
    return len(line)


def units(line: str, count: int) -> int:
    """How many UTF-16 units the first `count` characters of a line make."""
    part = line[:count]
    return len(part) if part.isascii() else len(part.encode("utf-16-le", "surrogatepass")) // 2


def occurrences(line: str, name: str) -> list[int]:
    """Where a name stands in a line as a whole word, in characters from 0."""
    edge = r"(?<!\w)%s(?!\w)" if re.fullmatch(r"\w+", name) else "%s"
    return [found.start() for found in re.finditer(edge % re.escape(name), line)]


def word_at(line: str, column: int) -> str:
    """The word that stands at a column (from 0) or ends there; empty where there is none."""
    return next((found.group() for found in _WORD.finditer(line) if found.start() <= column <= found.end()), "")


def position_from(value: Any) -> Position:
    """A position of an answer. Raises for anything else."""
    if isinstance(value, dict):
        line, character = value.get("line"), value.get("character")
        if isinstance(line, int) and isinstance(character, int) and line >= 0 and character >= 0:
            return Position(line, character)
    raise ExecutionFailed("The language server answered with a position that is none.")


def edited(text: str, edits: Sequence[Any]) -> str:
    """The text after the protocol's text edits. Raises for edits that overlap."""
    lines = Lines(text)
    spans: list[tuple[int, int, str]] = []
    for edit in edits:
        span = edit.get("range") if isinstance(edit, dict) else None
        new = edit.get("newText") if isinstance(edit, dict) else None
        if not isinstance(span, dict) or not isinstance(new, str):
            raise ExecutionFailed("The language server answered with an edit that is none.")
        start = lines.offset(position_from(span.get("start")))
        spans.append((start, lines.offset(position_from(span.get("end"))), new))
    # Stable: inserts at one place keep their order.
    spans.sort(key=lambda span: (span[0], span[1]))
    pieces: list[str] = []
    at = 0
    for start, end, new in spans:
        if start < at or end < start:
            raise ExecutionFailed("The language server answered with edits that overlap.")
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])
