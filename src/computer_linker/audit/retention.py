"""Retention: old segments move into the reserve, which has a share for each principal; a sealed anchor links to the rest."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from computer_linker.audit.layout import MAX_LINE, PRIVATE, list_segments, read_at, segment_path
from computer_linker.audit.reading import JournalPosition, Line, lines_after
from computer_linker.audit.reserve import Anchor, ReserveWriter, kept_lines, read_anchor, write_anchor
from computer_linker.audit.secret import Key
from computer_linker.model.event import Event
from computer_linker.model.principal import account_of
from computer_linker.system import os

_CONSENTS = ("approvals.", "confirm.")
OWNER = "cli:"
"""How the ids of the owner's principals begin."""


class Share(NamedTuple):
    """A principal and a kind of record: changes, refusals, consents and the owner's are acts, the others reads."""

    principal: str
    kind: Literal["acts", "reads"]


class Sorter:
    """Finds the share of each record, in the order of the journal: an outcome belongs to its intent."""

    def __init__(self) -> None:
        self._intents: dict[str, Share] = {}

    def share(self, fields: dict[str, Any]) -> Share | None:
        """The share of a record; None for one that is of no use by itself."""
        match fields["kind"]:
            case "intent":
                share = self._intents[fields["operationId"]] = Share(account_of(fields["principal"]), "acts")
                return share
            case "outcome":
                return self._intents.pop(fields["operationId"], None)
            case "record":
                return Share(account_of(fields["principal"]), "acts" if _is_act(fields) else "reads")
            case "left_out" | "lost":
                return Share(fields.get("principal", ""), "acts")
            case _:
                return None


def _is_act(fields: dict[str, Any]) -> bool:
    return (
        fields.get("effect") is not None
        or fields.get("decision") != "allow"
        or fields.get("errorCode") in REFUSED
        or fields["principal"].startswith(OWNER)
        or fields["op"].startswith(_CONSENTS)
    )


def excess(usage: dict[Share, int], room: int) -> dict[Share, int]:
    """Return how many bytes each share must lose so that acts and reads each fit half the room.

    The largest shares lose first: a share below the common level loses nothing, however much another holds.
    """
    over: dict[Share, int] = {}
    for kind in ("acts", "reads"):
        used = {share: size for share, size in usage.items() if share.kind == kind}
        level = _level(used.values(), room // 2)
        over |= {share: size - level for share, size in used.items() if size > level}
    return over


def _level(sizes: Iterable[int], room: int) -> int:
    """Return the most each may hold so that all fit: small ones whole, the rest equal."""
    ordered = sorted(sizes)
    for index, size in enumerate(ordered):
        alike = room // (len(ordered) - index)
        if size > alike:
            return alike
        room -= size
    return ordered[-1] if ordered else 0


_TIME = re.compile(rb'"(?:startedAt|at)":"([0-9TZ:.-]+)"')


def first_kept(folder: Path, key: Key) -> JournalPosition:
    """Return where the complete chain begins. Raises BrokenLink when the anchor's seal does not verify."""
    return read_anchor(folder, key).place


def prunable(folder: Path, *, before: str | None, max_bytes: int | None, pruned_by: str = "") -> list[int]:
    """The oldest segments that are entirely older than `before` (ignoring operation `pruned_by`), or beyond `max_bytes`.

    Never the newest one.
    """
    segments = list_segments(folder)
    sizes = {segment: segment_path(folder, segment).stat().st_size for segment in segments}
    total, gone = sum(sizes.values()), []
    for oldest in segments[:-1]:
        too_old = before is not None and ended(folder, oldest, pruned_by) < before
        if not too_old and (max_bytes is None or total <= max_bytes):
            break
        gone.append(oldest)
        total -= sizes[oldest]
    return gone


def retire(
    folder: Path, key: Key, segments: list[int], *, before: str | None, room: int | None, pruned_by: str = ""
) -> int:
    """Move these oldest segments into the reserve and cut that to `room` bytes; return how many records were removed.

    The operation `pruned_by` is never too old: it is the one that prunes.

    Writing the anchor switches to the new reserve atomically: a crash before leaves the old state, one after it unused files.
    """
    old = read_anchor(folder, key)
    if not segments and not (old.kept and before is not None and old.oldest < before):
        return 0
    moved = _Moved(folder, key, old, segments)
    over = excess(_usage(moved, before), room) if room is not None else {}
    writer = ReserveWriter(folder, key, old.last_id)
    gone, sorter, ages, raw = 0, Sorter(), _Ages(before), _Raw(folder)
    dropped: set[str] = set()
    for line in moved.lines():
        name = line.fields.get("operationId", "")
        share, is_old = sorter.share(line.fields), ages.is_old(line) and name != (pruned_by or None)
        takes = over.get(share, 0) > 0 if share is not None else True
        if line.fields["kind"] == "outcome":
            takes = name in dropped or share is None
        if not is_old and not takes:
            writer.keep(line, raw.bytes_of(line))
            continue
        gone += share is not None
        if share is not None and not is_old:
            over[share] = over.get(share, 0) - line.length - 1
        if line.fields["kind"] == "intent":
            dropped.add(name)
    raw.close()
    write_anchor(folder, key, writer.finish(moved.end))
    for number in [*segments, *(-file.id for file in old.kept)]:
        segment_path(folder, number).unlink(missing_ok=True)
    return gone


def clear_strays(folder: Path, key: Key) -> None:
    """Remove what a crash left: files of a reserve that never became active, and segments already moved into it."""
    anchor = read_anchor(folder, key)
    known = {file.id for file in anchor.kept}
    for path in folder.glob("kept-*.jsonl"):
        if int(path.stem.removeprefix("kept-")) not in known:
            path.unlink(missing_ok=True)
    for segment in list_segments(folder):
        if segment < anchor.place.segment:
            segment_path(folder, segment).unlink(missing_ok=True)


class _Moved:
    """The input of a new reserve: the old one and the segments to move."""

    def __init__(self, folder: Path, key: Key, old: Anchor, segments: list[int]) -> None:
        self._folder, self._key, self._old, self._segments = folder, key, old, segments
        self.end = old.place

    def lines(self) -> Iterator[Line]:
        yield from kept_lines(self._folder, self._key, self._old)
        place = self._old.place
        if self._segments:
            last = self._segments[-1]
            end = (last, segment_path(self._folder, last).stat().st_size)
            for line in lines_after(self._folder, self._key, place, end):
                yield line
                place = line.after
            place = JournalPosition(place.number + 1, 0, place.number, place.seal)
        self.end = place


def _usage(moved: _Moved, before: str | None) -> Counter[Share]:
    usage: Counter[Share] = Counter()
    sorter, ages = Sorter(), _Ages(before)
    for line in moved.lines():
        share = sorter.share(line.fields)
        if not ages.is_old(line) and share is not None:
            usage[share] += line.length + 1
    return usage


class _Ages:
    """Decides which records are too old; one without a time of its own is as old as the one before it."""

    def __init__(self, before: str | None) -> None:
        self._before = before
        self._at = ""

    def is_old(self, line: Line) -> bool:
        self._at = line.fields.get("startedAt") or line.fields.get("at") or self._at
        return self._before is not None and self._at < self._before


class _Raw:
    """Reads the raw bytes of records from their files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segment, self._handle = 0, -1

    def bytes_of(self, line: Line) -> bytes:
        if line.segment != self._segment or self._handle < 0:
            self.close()
            self._handle = os.open(segment_path(self._folder, line.segment), os.O_RDONLY | PRIVATE)
            self._segment = line.segment
        raw: bytes = read_at(self._handle, line.length, line.offset)
        return raw

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def ended(folder: Path, segment: int, pruned_by: str = "") -> str:
    """When the newest operation of a segment began, except `pruned_by`."""
    path = segment_path(folder, segment)
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 64 * MAX_LINE))
        lines = file.read().splitlines()
    for line in reversed(lines):
        found = _TIME.search(line)
        if found and not (pruned_by and pruned_by.encode() in line):
            return found[1].decode("ascii")
    return ""


# Bounds what refusals can add to the history: past a rate they are counted, and the count is kept.

PER_MINUTE = 1000
"""Refusals of one principal kept whole in a minute; at some 400 bytes each, well under a megabyte."""
MAX_KINDS = 50

REFUSED = frozenset(
    """
    invalid_request unknown_scope unknown_operation permission_denied path_out_of_scope
    confirm_required denied_by_person no_answer process_not_found
    """.split()
)


class Flood:
    """Counts refusals by minute. Whatever ran, or has an intent, is always kept whole."""

    def __init__(self) -> None:
        self._minute = 0
        self._kept: Counter[str] = Counter()
        self._left_out: Counter[tuple[str, str]] = Counter()

    def __bool__(self) -> bool:
        return bool(self._left_out)

    def takes(self, event: Event) -> bool:
        """Return True when this event is only counted."""
        if event.ok or event.error_code not in REFUSED:
            return False
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._kept = minute, Counter()
        account = account_of(event.principal)
        who = account if len(self._kept) < MAX_KINDS or account in self._kept else ""
        self._kept[who] += 1
        if self._kept[who] <= PER_MINUTE:
            return False
        kind = (account, event.error_code)
        self._left_out[kind if len(self._left_out) < MAX_KINDS else ("", "")] += 1
        return True

    def due(self) -> Counter[tuple[str, str]]:
        """Return the counts of past minutes, which are now to be recorded."""
        if not self._left_out or int(time.monotonic() // 60) == self._minute:
            return Counter()
        counts, self._left_out = self._left_out, Counter()
        return counts

    def rest(self) -> Counter[tuple[str, str]]:
        """Return all remaining counts, at shutdown."""
        counts, self._left_out = self._left_out, Counter()
        return counts
