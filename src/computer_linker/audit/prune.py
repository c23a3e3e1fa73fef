"""Prune: remove old records, from the command line or by the service once a day."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from computer_linker.audit.journal import AuditJournal
from computer_linker.audit.layout import PRIVATE, list_segments, segment_path
from computer_linker.audit.retention import clear_strays, prunable, retire
from computer_linker.errors import InvalidRequest
from computer_linker.system import lock, os

KEEP_DAYS = 180
KEEP_BYTES = 1 << 30


def prune(folder: Path, *, before: str | None = None, max_bytes: int | None = None, by: str = "") -> int:
    """Remove records older than `before`, and what `max_bytes` has no room for; return how many were removed.

    A quarter of `max_bytes` is the reserve, where every principal has its own share, with changes, refusals and consents
    separate from reads; the rest holds the newest records whole. Writes new files, so that a service may continue appending
    meanwhile. `by` is the pruning operation itself, which is kept.
    """
    journal = AuditJournal(folder)
    handle = os.open(folder / "prune.lock", os.O_RDWR | os.O_CREAT | PRIVATE, 0o600)
    lock(handle)
    try:
        journal.rotate_if_older(before, by)
        clear_strays(folder, journal.key)
        room = None if max_bytes is None else max_bytes // 4
        newest = None if max_bytes is None or room is None else max_bytes - room
        segments = prunable(folder, before=before, max_bytes=newest, pruned_by=by)
        return retire(folder, journal.key, segments, before=before, room=room, pruned_by=by)
    finally:
        os.close(handle)
        journal.close()


def time_of(text: str) -> str:
    """A time as events have it, of `90d`, `12h` or `30m` ago; any other text as it is."""
    units = {"d": 1.0, "h": 1 / 24, "m": 1 / 1440}
    number, unit = text[:-1], text[-1:]
    if unit in units and number.replace(".", "", 1).isdecimal():
        return days_ago(float(number) * units[unit])
    return text


def bytes_of(text: str) -> int:
    """A size such as `200MB`. Raises InvalidRequest for anything else."""
    units = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
    number, unit = text[:-2], text[-2:].upper()
    if unit in units and number.isdecimal():
        return int(number) * units[unit]
    raise InvalidRequest(f"{text[:40]!r} is no size.", hint="for example 200MB or 1GB")


def days_ago(days: float) -> str:
    """A time as events have it."""
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def keep_bounded(folder: Path, max_bytes: int = KEEP_BYTES) -> None:
    """Prune with the service's defaults: half a year, or a gigabyte."""
    prune(folder, before=days_ago(KEEP_DAYS), max_bytes=max_bytes)


def is_over(folder: Path, max_bytes: int = KEEP_BYTES) -> bool:
    """Return True when the history grew so much that pruning should not wait for the next day."""
    total = sum(segment_path(folder, segment).stat().st_size for segment in list_segments(folder))
    return total > max_bytes - max_bytes // 8
