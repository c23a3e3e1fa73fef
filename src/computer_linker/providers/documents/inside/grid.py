"""Tables as text: cell ranges, types, and rows as lines of cells between tabs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from computer_linker.providers.documents.inside.base import invalid

MAX_COLUMN, MAX_ROW = 16_384, 1_048_576
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")
_ESCAPES = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": ""})
SHOWN_COLUMNS = 100
"""Columns of one answer when no range was asked for."""


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of cells, counted from 1, both corners included."""

    left: int
    top: int
    right: int
    bottom: int

    def __str__(self) -> str:
        return f"{letters(self.left)}{self.top}:{letters(self.right)}{self.bottom}"


def letters(column: int) -> str:
    """The letters of a column: A, Z, AA."""
    out = ""
    while column:
        column, rest = divmod(column - 1, 26)
        out = chr(65 + rest) + out
    return out


def column_of(name: str) -> int:
    number = 0
    for char in name.upper():
        number = number * 26 + ord(char) - 64
    return number


def cell_of(name: str) -> tuple[int, int]:
    """Column and row of a cell's name such as B7."""
    found = _CELL.fullmatch(name.strip())
    if found is None or not 1 <= int(found[2]) <= MAX_ROW or column_of(found[1]) > MAX_COLUMN:
        raise invalid(f"{name!r} is no cell; write it as B7, and a range as A1:D20.")
    return column_of(found[1]), int(found[2])


def area_of(text: str) -> Area:
    """The area of `A1:D20`, `B7`, `A:C` (columns) or `5:9` (rows)."""
    start, _, end = text.replace(" ", "").partition(":")
    end = end or start
    if start.isdigit() and end.isdigit():
        return Area(1, int(start), SHOWN_COLUMNS, int(end))
    if start.isalpha() and end.isalpha() and max(len(start), len(end)) <= 3:
        left, right = sorted((column_of(start), column_of(end)))
        return Area(left, 1, right, MAX_ROW)
    (left, top), (right, bottom) = cell_of(start), cell_of(end)
    return Area(min(left, right), min(top, bottom), max(left, right), max(top, bottom))


def shown(value: str) -> str:
    """A cell's text on one line."""
    return value.translate(_ESCAPES)


class Lines:
    """Rows as lines within a budget: the row's number, then its cells between tabs."""

    def __init__(self, header: Sequence[str], room: int) -> None:
        self.lines = ["\t".join(["", *header])]
        self._room = room - len(self.lines[0]) - 1
        self.is_full = False
        self.last = 0

    def add(self, number: int, cells: Iterable[str]) -> bool:
        """Add a row; False when it does not fit any more."""
        line = "\t".join([str(number), *map(shown, cells)]).rstrip("\t")
        self._room -= len(line.encode("utf-8", "replace")) + 1
        if self._room < 0 and self.last:
            self.is_full = True
            return False
        self.lines.append(line)
        self.last = number
        return True

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
