"""The history: durable events a second, and answers at a million events."""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from benchmarks.ratio import Ratio
from computer_linker.audit.history import HistoryFolder
from computer_linker.audit.index import Index
from computer_linker.audit.journal import AuditJournal
from computer_linker.audit.store import AuditStore
from computer_linker.audit.views import Question, answer_now
from computer_linker.model.event import Event
from computer_linker.model.ids import new_ulid

MANY = int(os.environ.get("COMPUTER_LINKER_BENCH_EVENTS", "1000000"))
FEW = 1000
WRITERS = 40
EACH = 15
ROUNDS = 5
_OPS = ("file.read", "file.write", "file.list", "command.run", "git.status", "file.search")
_WORDS = ("src", "docs", "tests", "dispatcher", "policy", "notes", "report", "index", "engine", "journal", "readme")


def run() -> list[Ratio]:
    place = Path(tempfile.mkdtemp(prefix="bench-audit-"))
    try:
        return [*anyio.run(_durability, place), *_answers(place)]
    finally:
        shutil.rmtree(place)


async def _durability(place: Path) -> list[Ratio]:
    store = AuditStore(place / "writers")
    ours, limit, single, plain = [], [], [], []
    for _ in range(ROUNDS):
        ours.append(await _timed_writers(store))
        limit.append(_plain_appends(place / "plain", WRITERS * EACH))
        single.append(await _timed_records(store, 2000))
        plain.append(_plain_writes(place / "plain", 2000))
    await store.aclose()
    count = WRITERS * EACH
    durable = f"{count / statistics.median(ours):.0f} against {count / statistics.median(limit):.0f} events a second"
    return [
        Ratio(
            f"{count} durable events, {WRITERS} writers, against append and fdatasync for each",
            statistics.median(ours),
            statistics.median(limit),
            0.5,
            note=durable,
        ),
        Ratio(
            "one event recorded (survives kill -9), against a bare write() of as many bytes",
            statistics.median(single) / 2000 * 1e6,
            statistics.median(plain) / 2000 * 1e6,
            30,
            unit="us",
        ),
    ]


async def _timed_writers(store: AuditStore) -> float:
    async def writer() -> None:
        for _ in range(EACH):
            store.intent(_event())
            await store.durable()

    started = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(WRITERS):
            group.start_soon(writer)
    return time.perf_counter() - started


async def _timed_records(store: AuditStore, count: int) -> float:
    events = [_event() for _ in range(count)]
    started = time.perf_counter()
    for event in events:
        await store.record(event)
    return time.perf_counter() - started


def _plain_appends(path: Path, count: int) -> float:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    started = time.perf_counter()
    for _ in range(count):
        os.write(handle, b"x" * 350)
        os.fdatasync(handle)
    taken = time.perf_counter() - started
    os.close(handle)
    return taken


def _plain_writes(path: Path, count: int) -> float:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    started = time.perf_counter()
    for _ in range(count):
        os.write(handle, b"x" * 350)
    taken = time.perf_counter() - started
    os.close(handle)
    return taken


def _event() -> Event:
    return Event(
        new_ulid(),
        "2026-11-16T05:00:00.000Z",
        "app",
        "file.read",
        "local:bench",
        "session-1",
        "connection-1",
        "bench",
        target="src/computer_linker/audit/journal.py",
        capability="fs:read",
        ok=True,
        duration_ms=1.25,
        summary={"bytes": 100},
    )


def _answers(place: Path) -> list[Ratio]:
    _fill(place / "few", FEW)
    _fill(place / "many", MANY)
    few, many = HistoryFolder(place / "few"), HistoryFolder(place / "many")
    middle = f"e{MANY // 2}"
    ratios = []
    for view, cursor in (("last", None), ("timeline", None)):
        ours, limit = _interleaved(
            lambda: answer_now(many, Question(view, None, "app", cursor=cursor)),  # noqa: B023 - used at once
            lambda: answer_now(few, Question(view, None, "app")),  # noqa: B023
        )
        ratios.append(Ratio(f"a page of {view} at {MANY:,} events, against {FEW:,}", ours, limit, 2))
    ours, limit = _interleaved(
        lambda: answer_now(many, Question("timeline", None, "app", cursor=middle)),
        lambda: answer_now(few, Question("timeline", None, "app", cursor=f"e{FEW // 2}")),
    )
    ratios.append(Ratio(f"a page in the middle of {MANY:,} events, against {FEW:,}", ours, limit, 2))
    for words in ("dispatcher", "dispatcher policy", "name123"):
        ours, limit = _interleaved(
            lambda: answer_now(many, Question("last", None, query=words)),  # noqa: B023
            lambda: _bare_search(many.index, words),  # noqa: B023
        )
        ratios.append(Ratio(f"text query {words!r} at {MANY:,} events, against FTS5 alone", ours, limit, 2))
    return ratios


def _bare_search(index: Index, words: str) -> None:
    """What FTS5 itself takes for the same 50 events, on a connection of its own like ours."""
    match = " ".join(f'"{word}"*' for word in words.split())
    with index.reading() as database:
        query = (
            "SELECT * FROM events WHERE number IN"
            " (SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 51)"
        )
        database.execute(query, (match,)).fetchall()


def _interleaved(ours: Callable[[], object], limit: Callable[[], object]) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(30):
        for work, taken in zip((ours, limit), times, strict=True):
            started = time.perf_counter()
            work()
            taken.append(time.perf_counter() - started)
    return statistics.median(times[0]), statistics.median(times[1])


def _fill(folder: Path, count: int) -> None:
    journal = AuditJournal(folder)
    for start in range(0, count, 500):
        journal.append([_body(number, count) for number in range(start, min(start + 500, count))])
    Index(folder, journal.key).catch_up()
    journal.close()


def _body(number: int, count: int) -> str:
    day = 1 + number * 27 // count
    target = f"{_WORDS[number % 11]}/{_WORDS[number * 7 % 11]}/name{number}.py"
    return (
        f'"kind":"record","operationId":"01M7{number:022d}","startedAt":"2026-11-{day:02d}T08:00:00.000Z"'
        f',"scope":"{"app" if number % 3 else "docs"}","op":"{_OPS[number % 6]}","principal":"local:bench"'
        f',"session":"session-{number // 500}","connection":"connection-{number // 2000}","client":"bench"'
        f',"target":"{target}","capability":"fs:read","decision":"allow"'
        f',"ok":{"true" if number % 13 else "false"},"durationMs":1.5,"summary":{{"bytes":{number}}}'
    )
