"""Prune: remove old records, from the command line or by the service once a day."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from computer_linker.audit import lock
from computer_linker.audit.journal import Journal
from computer_linker.audit.layout import PRIVATE, list_segments, segment_path
from computer_linker.audit.retention import clear_strays, prunable, retire

KEEP_DAYS = 180
KEEP_BYTES = 1 << 30


def prune(folder: Path, *, before: str | None = None, max_bytes: int | None = None) -> int:
    """Remove records older than `before`, and what `max_bytes` has no room for; how many records went.

    A quarter of the room is the reserve, where every principal has a share of its own, with changes, refusals and consents
    apart from reads; the rest holds the newest records whole. Works on files of its own, so that a service may go on appending
    meanwhile.
    """
    journal = Journal(folder)
    handle = os.open(folder / "prune.lock", os.O_RDWR | os.O_CREAT | PRIVATE, 0o600)
    lock.take(handle)
    try:
        journal.rotate_if_older(before)
        clear_strays(folder, journal.key)
        room = None if max_bytes is None else max_bytes // 4
        newest = None if max_bytes is None or room is None else max_bytes - room
        segments = prunable(folder, before=before, max_bytes=newest)
        return retire(folder, journal.key, segments, before=before, room=room)
    finally:
        os.close(handle)
        journal.close()


def days_ago(days: float) -> str:
    """A time as events have it."""
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def keep_bounded(folder: Path, max_bytes: int = KEEP_BYTES) -> None:
    """What the service does by itself: half a year, or a gigabyte."""
    prune(folder, before=days_ago(KEEP_DAYS), max_bytes=max_bytes)


def is_over(folder: Path, max_bytes: int = KEEP_BYTES) -> bool:
    """True when so much came in since the last time that it should not wait for the next day."""
    total = sum(segment_path(folder, segment).stat().st_size for segment in list_segments(folder))
    return total > max_bytes - max_bytes // 8
