"""Reads the journal's lines back, each checked against the seal of the one before it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from computer_linker.audit.layout import PRIVATE, SEAL, list_segments, opened, read_at, segment_path
from computer_linker.audit.secret import Key
from computer_linker.system import os

_BLOCK = 1 << 20


class JournalPosition(NamedTuple):
    """The position after a line: that line's number and seal, and the offset after it."""

    segment: int
    offset: int
    number: int
    seal: bytes


class Line(NamedTuple):
    """One record: its fields, its position, and the seal it is linked to."""

    fields: dict[str, Any]
    segment: int
    offset: int
    length: int
    previous: bytes
    after: JournalPosition


class BrokenLink(Exception):
    """The line at this number is not the one that was written there."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(problem)
        self.number = number
        self.problem = problem


def lines_after(folder: Path, key: Key, place: JournalPosition, end: tuple[int, int]) -> Iterator[Line]:
    """Every record after `place` up to `end` (segment and offset). Raises BrokenLink at the first bad one."""
    known = [segment for segment in list_segments(folder) if _has_lines(segment_path(folder, segment))]
    while True:
        limit = end[1] if place.segment == end[0] else None
        for line in _lines_of(folder, key, place, limit):
            yield line
            place = line.after
        later = [segment for segment in known if place.segment < segment <= end[0]]
        if not later:
            return
        if later[0] != place.number + 1:
            raise BrokenLink(place.number + 1, "a whole segment is missing")
        place = JournalPosition(later[0], 0, place.number, place.seal)


def _has_lines(segment: Path) -> bool:
    """False for a segment that was about to begin, and for one that was pruned since the folder was listed."""
    try:
        return segment.stat().st_size > 0
    except FileNotFoundError:
        return False


def _lines_of(folder: Path, key: Key, place: JournalPosition, limit: int | None) -> Iterator[Line]:
    try:
        handle = os.open(segment_path(folder, place.segment), os.O_RDONLY | PRIVATE)
    except FileNotFoundError:
        raise BrokenLink(place.number + 1, "the segment's file is missing") from None
    try:
        limit = os.fstat(handle).st_size if limit is None else limit
        rest, offset = b"", place.offset
        while offset + len(rest) < limit:
            block = read_at(handle, min(_BLOCK, limit - offset - len(rest)), offset + len(rest))
            if not block:
                raise BrokenLink(place.number + 1, "the records end early")
            *complete, rest = (rest + block).split(b"\n")
            for raw in complete:
                line = checked(raw, key, place, offset)
                offset, place = line.after.offset, line.after
                yield line
        if rest:
            raise BrokenLink(place.number + 1, "a record has no end")
    finally:
        os.close(handle)


def checked(raw: bytes, key: Key, place: JournalPosition, offset: int) -> Line:
    """One line as the record after `place`. Raises BrokenLink when it is not."""
    number = place.number + 1
    body = opened(raw, key, place.seal)
    if body is None:
        raise BrokenLink(number, "the record was changed, or one before it was taken out")
    fields = from_json(body)
    if fields["n"] != number:
        raise BrokenLink(number, "the record has another number")
    after = JournalPosition(place.segment, offset + len(raw) + 1, number, raw[:SEAL])
    return Line(fields, place.segment, offset, len(raw), place.seal, after)


def read_line(handle: int, key: Key, offset: int, length: int, previous: bytes) -> dict[str, Any] | None:
    """One record read at random; None when it is not the one that was sealed there."""
    raw = read_at(handle, length, offset)
    body = opened(raw, key, previous)
    if body is None:
        return None
    fields: dict[str, Any] = from_json(body)
    return fields
