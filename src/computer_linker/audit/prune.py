"""Prune: remove old records, from the command line or by the service once a day."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from computer_linker.audit import lock
from computer_linker.audit.journal import Journal
from computer_linker.audit.layout import PRIVATE
from computer_linker.audit.retention import drop, first_kept, prunable

KEEP_DAYS = 180
KEEP_BYTES = 1 << 30


def prune(folder: Path, *, before: str | None = None, max_bytes: int | None = None) -> int:
    """Remove whole segments older than `before` or beyond `max_bytes`; how many records went.

    Works on files of its own, so that a service may go on appending meanwhile.
    """
    journal = Journal(folder)
    handle = os.open(folder / "prune.lock", os.O_RDWR | os.O_CREAT | PRIVATE, 0o600)
    lock.take(handle)
    try:
        journal.rotate_if_older(before)
        begins = first_kept(folder, journal.key)
        place = drop(folder, journal.key, prunable(folder, before=before, max_bytes=max_bytes))
    finally:
        os.close(handle)
        journal.close()
    return place.number - begins.number


def days_ago(days: float) -> str:
    """A time as events have it."""
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def keep_bounded(folder: Path) -> None:
    """What the service does by itself: half a year, or a gigabyte."""
    prune(folder, before=days_ago(KEEP_DAYS), max_bytes=KEEP_BYTES)
