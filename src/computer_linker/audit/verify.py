"""Verify: check the whole chain and report the first record that was changed."""

from dataclasses import dataclass
from pathlib import Path

from computer_linker.audit.faults import AuditDamaged
from computer_linker.audit.index import Index
from computer_linker.audit.layout import PRIVATE, list_segments, read_head, segment_path
from computer_linker.audit.reading import BrokenLink, JournalPosition, lines_after
from computer_linker.audit.reserve import kept_lines, read_anchor
from computer_linker.audit.secret import Key
from computer_linker.system import os


@dataclass(frozen=True, slots=True)
class Verification:
    """The result. `first_bad` is a record's number; of the records before `begins_at` only `kept` are there."""

    ok: bool
    records: int
    begins_at: int
    first_bad: int | None = None
    problem: str | None = None
    operation_id: str | None = None
    """The operation of the first bad record, from the index."""
    kept: int = 0


def verify(folder: Path, key: Key, index: Index | None = None) -> Verification:
    """Check the chain from its anchor to its head, then compare the index with it."""
    try:
        anchor = read_anchor(folder, key)
        start = anchor.place
    except (BrokenLink, ValueError, KeyError):
        return Verification(False, 0, 0, 0, "the anchor of the pruned records was changed")
    place, kept = start, 0
    try:
        for _ in kept_lines(folder, key, anchor):
            kept += 1
    except BrokenLink as broken:
        return _bad(start, start, broken.number, broken.problem, index)
    try:
        head = _head(folder, key)
        # Segments after the head's may hold records of a crash just before the head could be moved.
        last = max([head.segment, *list_segments(folder)])
        for line in lines_after(folder, key, place, (last, _size(folder, last))):
            place = line.after
    except BrokenLink as broken:
        return _bad(start, place, broken.number, broken.problem, index)
    except AuditDamaged as error:
        return _bad(start, place, place.number + 1, error.message, index)
    if place.number < head.number:
        return _bad(start, place, place.number + 1, "the newest records are gone", index)
    if index is not None:
        number = index.differs()
        if number is not None:
            index.rebuild()
            return _bad(start, place, number, "the index told this event otherwise and was made again", index)
    return Verification(True, kept + place.number - start.number, start.number + 1, kept=kept)


def _bad(
    start: JournalPosition, place: JournalPosition, number: int, problem: str, index: Index | None
) -> Verification:
    operation_id = None
    if index is not None:
        with index.reading() as database:
            query = "SELECT id FROM events WHERE number = ? OR end_number = ?"
            row = database.execute(query, (number, number)).fetchone()
            operation_id = row[0] if row else None
    return Verification(False, place.number - start.number, start.number + 1, number, problem, operation_id)


def _head(folder: Path, key: Key) -> JournalPosition:
    try:
        handle = os.open(folder / "head", os.O_RDONLY | PRIVATE)
    except FileNotFoundError:
        raise BrokenLink(1, "the head of the chain is missing") from None
    try:
        head = read_head(handle, key)
    except (ValueError, TypeError):
        head = None
    finally:
        os.close(handle)
    if head is None:
        if any(_size(folder, segment) for segment in list_segments(folder)):
            raise BrokenLink(1, "the head of the chain is missing")
        return read_anchor(folder, key).place
    return JournalPosition(head.segment, head.offset, head.number, head.seal)


def _size(folder: Path, segment: int) -> int:
    try:
        return segment_path(folder, segment).stat().st_size
    except FileNotFoundError:
        return 0
