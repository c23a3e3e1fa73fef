"""Documents: one page of a long PDF and one range of a large workbook, through the whole road and the sandbox."""

import random
import statistics
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.ratio import Ratio, in_a_folder
from computer_linker.providers.documents.decoder import Decoder
from support.documents import excel, pdf, row
from support.road import Road

_PAGES = 300
_SHEET_BYTES = 100_000_000
_COLUMNS = 12
_ROUNDS = 5
_SEED = 25


def run() -> list[Ratio]:
    """All figures of the family."""
    return in_a_folder(_run)


async def _run(folder: Path) -> list[Ratio]:
    async with Road.open(folder) as road:
        (road.root / "long.pdf").write_bytes(_long_pdf())
        (road.root / "small.pdf").write_bytes(pdf("one"))
        last = _large_workbook(road.root / "large.xlsx")
        (road.root / "small.xlsx").write_bytes(excel(row(1, "a", 1)))
        page = await _seconds(road, "long.pdf", {"page": 200, "maxBytes": 4000}, "page 200")
        one = await _seconds(road, "small.pdf", {}, "one")
        middle = await _seconds(road, "large.xlsx", {"range": f"A{last // 2}:D{last // 2 + 20}"}, str(last // 2))
        end = await _seconds(road, "large.xlsx", {"range": f"A{last - 20}:D{last}"}, str(last))
        tiny = await _seconds(road, "small.xlsx", {}, "a")
        peak, busy = await _used(road, "large.xlsx", f"A{last - 20}:D{last}")
    return [
        Ratio("page 200 of a 300-page PDF, against 0.3 s", page, 0.3, 1.0, "s"),
        Ratio("the same, against the page of a one-page PDF", page, one, 1.5, "s"),
        Ratio("a range in the middle of a 100 MB workbook, against 1 s", middle, 1.0, 1.0, "s", f"{last} rows"),
        Ratio("a range at its end, against 1 s", end, 1.0, 1.0, "s", f"a small workbook takes {tiny:.2f} s"),
        Ratio("its decoder's processor time, against 1 s", busy, 1.0, 1.0, "s"),
        Ratio("peak memory of the decoder at its end, against 300 MB", peak, 300, 1.0, "MB"),
    ]


async def _seconds(road: Road, name: str, options: dict[str, Any], holds: str) -> float:
    times = []
    for _ in range(_ROUNDS + 1):
        start = time.perf_counter()
        found = await road.data("file.read", name, options=options)
        times.append(time.perf_counter() - start)
        assert holds in found["content"], found["content"][:200]
    # The first one digests the file and probes the sandbox.
    return statistics.median(times[1:])


async def _used(road: Road, name: str, area: str) -> tuple[float, float]:
    """Megabytes and processor seconds of the decoder."""
    with (road.root / name).open("rb") as file:
        order = {"action": "read", "kind": "package", "range": area}
        found = await road.app.services.use(Decoder).run(
            file.fileno(), order, road.app.services.config.scopes[0].policy
        )
    return float(found.facts["peak"]) / 1e6, float(found.facts["processor"])


def _long_pdf() -> bytes:
    chance = random.Random(_SEED)
    words = "the quick brown fox jumps over a lazy dog while it rains in spring".split()

    def text(number: int) -> str:
        lines = [f"page {number}"] + [" ".join(chance.choices(words, k=12)) for _ in range(45)]
        return ") Tj 0 -14 Td (".join(lines)

    return pdf(*(text(number) for number in range(1, _PAGES + 1)))


def _large_workbook(place: Path) -> int:
    """A workbook of at least 100 MB on the disk, with random numbers and texts; the number of its last row."""
    chance = random.Random(_SEED)
    small = place.with_suffix(".tmp")
    small.write_bytes(excel("ROWS"))
    number = 0
    with zipfile.ZipFile(small) as old, zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for name in old.namelist():
            content = old.read(name)
            if b"ROWS" not in content:
                made.writestr(name, content)
                continue
            start, end = content.split(b"ROWS")
            with made.open(name, "w", force_zip64=True) as part:
                part.write(start)
                while place.stat().st_size < _SHEET_BYTES and number < 1_000_000:
                    part.write("".join(_row(chance, number + at) for at in range(1, 5001)).encode())
                    number += 5000
                part.write(end)
    small.unlink()
    return number


def _row(chance: random.Random, number: int) -> str:
    values = chance.getrandbits(64 * _COLUMNS)
    cells = [f'<c r="A{number}"><v>{number}</v></c>']
    for at in range(1, _COLUMNS):
        cells.append(f'<c r="{chr(65 + at)}{number}"><v>{values & 0xFFFFFFFFFFFFFFFF}</v></c>')
        values >>= 64
    return f'<row r="{number}">{"".join(cells)}</row>'
