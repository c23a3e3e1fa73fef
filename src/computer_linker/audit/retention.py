"""Retention: whole old segments go, and a sealed anchor keeps the rest of the chain provable."""

import json
import os
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from computer_linker.audit.layout import GENESIS, MAX_LINE, PRIVATE, list_segments, opened, segment_path, sync_folder
from computer_linker.audit.reading import BrokenLink, Place, lines_after
from computer_linker.audit.secret import Key

ANCHOR = "anchor"
_TIME = re.compile(rb'"(?:startedAt|at)":"([0-9TZ:.-]+)"')


def first_kept(folder: Path, key: Key) -> Place:
    """Where the kept chain begins. Raises BrokenLink when the anchor is not one of ours."""
    try:
        line = (folder / ANCHOR).read_bytes().strip()
    except FileNotFoundError:
        return Place(1, 0, 0, GENESIS)
    body = opened(line, key, b"anchor")
    if body is None:
        raise BrokenLink(0, "the anchor was changed")
    fields = json.loads(body)
    return Place(fields["segment"], 0, fields["number"], fields["seal"].encode("ascii"))


def prunable(folder: Path, *, before: str | None, max_bytes: int | None) -> list[int]:
    """The oldest segments that are wholly older than `before` or beyond `max_bytes`; never the newest one."""
    segments = list_segments(folder)
    sizes = {segment: segment_path(folder, segment).stat().st_size for segment in segments}
    total, gone = sum(sizes.values()), []
    for oldest in segments[:-1]:
        too_old = before is not None and _ended(folder, oldest) < before
        if not too_old and (max_bytes is None or total <= max_bytes):
            break
        gone.append(oldest)
        total -= sizes[oldest]
    return gone


def drop(folder: Path, key: Key, segments: list[int]) -> Place:
    """Remove these oldest segments: the anchor first, so that a crash between leaves files that no one misses."""
    place = first_kept(folder, key)
    if not segments:
        return place
    for segment in segments:
        end = (segment, segment_path(folder, segment).stat().st_size)
        for line in lines_after(folder, key, place, end):
            place = line.after
    place = Place(place.number + 1, 0, place.number, place.seal)
    _write_anchor(folder, key, place)
    for segment in segments:
        segment_path(folder, segment).unlink(missing_ok=True)
    return place


def _write_anchor(folder: Path, key: Key, place: Place) -> None:
    fields: dict[str, Any] = {"number": place.number, "seal": place.seal.decode("ascii"), "segment": place.segment}
    fields["at"] = datetime.now(UTC).isoformat(timespec="seconds")
    body = json.dumps(fields).encode("ascii")
    temporary = folder / f".{ANCHOR}.{secrets.token_hex(6)}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PRIVATE, 0o600)
    try:
        os.write(handle, key.seal(b"anchor", body) + b" " + body + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
    temporary.replace(folder / ANCHOR)
    sync_folder(folder)


def _ended(folder: Path, segment: int) -> str:
    """When the newest operation of a segment began."""
    path = segment_path(folder, segment)
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 64 * MAX_LINE))
        lines = file.read().splitlines()
    for line in reversed(lines):
        found = _TIME.search(line)
        if found:
            return found[1].decode("ascii")
    return ""
