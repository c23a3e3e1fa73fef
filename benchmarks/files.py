"""Files: our operations through the whole road against the plain calls they cannot be quicker than."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pydantic_core import to_json

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.ratio import Ratio, compared, compared_processor, in_a_folder
from support.road import LOCAL, Road


def run() -> list[Ratio]:
    """All figures of the family."""
    return in_a_folder(_run)


async def _run(folder: Path) -> list[Ratio]:
    async with Road.open(folder) as road:
        return [
            await _read(road),
            await _tail(road),
            *await _list(road),
            *await _tree(road),
            await _writes(road),
        ]


async def _reply(road: Road, op: str, target: str, **parts: Any) -> bytes:
    """One call as a surface makes it: the envelope as JSON bytes."""
    reply = await road.app.dispatcher.call_wire({"scope": "app", "op": op, "target": target, **parts}, LOCAL)
    if not reply.ok:
        raise RuntimeError(reply.envelope["error"]["message"])
    return to_json(reply.envelope, by_alias=True)


async def _read(road: Road) -> Ratio:
    path = road.root / "ten.txt"
    path.write_text(("a line of ordinary text, sixty or so bytes of it, number 12\n" * 180_000)[:10_000_000])
    size = path.stat().st_size

    async def ours() -> None:
        os.utime(path)
        line: int | None = 1
        while line is not None:
            options = {"maxBytes": 8_000_000, "startLine": line}
            reply = await road.app.dispatcher.call_wire(
                {"scope": "app", "op": "file.read", "target": "ten.txt", "options": options}, LOCAL
            )
            to_json(reply.envelope, by_alias=True)
            line = reply.envelope["data"].next_line

    def limit() -> None:
        with path.open(encoding="utf-8") as file:
            json.dumps(file.read())

    mine, theirs = await compared(9, ours, limit)
    return Ratio(
        "file.read of 10 MB in pages, digest included", mine, theirs, 2, note=f"{size} bytes, changed each time"
    )


async def _tail(road: Road) -> Ratio:
    path = road.root / "large.log"
    with path.open("w") as file:
        for _ in range(200):
            file.write("2026-01-01 00:00:00 INFO a line of a log as they are, with some words in it\n" * 13_300)
    lines = 200 * 13_300

    async def ours() -> None:
        await _reply(road, "file.read", "large.log", options={"startLine": lines - 100, "lineCount": 100})

    def limit() -> None:
        subprocess.run(["tail", "-n", "100", str(path)], check=True, stdout=subprocess.PIPE)

    mine, theirs = await compared(15, ours, limit)
    path.unlink()
    return Ratio("lines at the end of a 200 MB file, second time", mine, theirs, 3)


async def _list(road: Road) -> list[Ratio]:
    folder = road.root / "many"
    folder.mkdir()
    for number in range(10_000):
        (folder / f"file-{number:05d}.txt").touch()

    async def whole() -> None:
        await _reply(road, "file.list", "many", options={"maxResults": 20_000})

    async def names() -> None:
        await _reply(road, "file.list", "many", options={"maxResults": 20_000, "fields": ["name", "type"]})

    note = "limit: os.scandir with stat"
    rows = [Ratio("file.list of 10,000 entries", *await compared(7, whole, lambda: _walk(str(folder))), 2, note=note)]
    for job, ours, reach in (("all fields", whole, 4.8), ("name and type", names, 2)):
        mine, theirs = await compared_processor(7, ours, lambda: _walk(str(folder)))
        rows.append(Ratio(f"file.list of 10,000 entries, {job}, processor time", mine, theirs, reach, note=note))
    return rows


async def _tree(road: Road) -> list[Ratio]:
    folder = road.root / "tree"
    for number in range(1000):
        (folder / f"d{number:03d}").mkdir(parents=True)
        for inner in range(100):
            os.close(os.open(folder / f"d{number:03d}" / f"f{inner:02d}", os.O_CREAT, 0o644))

    async def ours() -> None:
        await _reply(road, "file.tree", "tree", options={"maxDepth": 9, "maxEntries": 120_000})

    async def pages() -> None:
        cursor: str | None = ""
        while cursor is not None:
            options = {"maxDepth": 9, "maxEntries": 20_000, **({"cursor": cursor} if cursor else {})}
            call = {"scope": "app", "op": "file.tree", "target": "tree", "options": options}
            reply = await road.app.dispatcher.call_wire(call, LOCAL)
            to_json(reply.envelope, by_alias=True)
            cursor = reply.envelope["data"].next_cursor

    note = "limit: os.scandir walk with stat"
    rows = [Ratio("file.tree of 100,000 files", *await compared(3, ours, lambda: _walk(str(folder))), 2, note=note)]
    for job, work in (("one call", ours), ("pages of 20,000", pages)):
        mine, theirs = await compared_processor(3, work, lambda: _walk(str(folder)))
        rows.append(Ratio(f"file.tree of 100,000 files, {job}, processor time", mine, theirs, 4, note=note))
    shutil.rmtree(folder)
    return rows


def _walk(top: str) -> list[tuple[str, int]]:
    """What anybody would write: every entry below a folder with its size."""
    found: list[tuple[str, int]] = []
    todo = [top]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                found.append((entry.path, entry.stat(follow_symlinks=False).st_size))
    return found


async def _writes(road: Road) -> Ratio:
    content, name = "x" * 1024, "writes"
    folder = road.root / name
    folder.mkdir()
    mine: list[float] = []
    theirs: list[float] = []
    for part in range(10):
        start = time.perf_counter()
        for number in range(50):
            _plain_write(folder / f"plain-{part}-{number}", content.encode())
        middle = time.perf_counter()
        for number in range(50):
            await _reply(road, "file.write", f"{name}/ours-{part}-{number}", input={"content": content})
        mine.append(time.perf_counter() - middle)
        theirs.append(middle - start)
    ours, limit = statistics.median(mine) * 10, statistics.median(theirs) * 10
    return Ratio("500 audited writes of 1 KB", ours, limit, 1.5, note="limit: write, fsync, rename; medians of 50")


def _plain_write(path: Path, data: bytes) -> None:
    draft = path.with_suffix(".tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(descriptor, data)
    os.fsync(descriptor)
    os.close(descriptor)
    draft.rename(path)
