"""One measured ratio: ours against a limit in the same run, with what must be reached."""

import asyncio
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ratio:
    """`ours / limit` must be at most `reach` (less is better)."""

    job: str
    ours: float
    limit: float
    reach: float
    unit: str = "s"
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.limit

    @property
    def reached(self) -> bool:
        return self.ratio <= self.reach


def in_a_folder(measure: Callable[[Path], Coroutine[Any, Any, list[Ratio]]]) -> list[Ratio]:
    """Measure in a folder of its own beside the project rather than in /tmp, which may be memory: a sync must reach a disk."""
    folder = Path(tempfile.mkdtemp(prefix=".bench-", dir=Path(__file__).parents[1]))
    try:
        return asyncio.run(measure(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def compared_processor(
    rounds: int, ours: Callable[[], Awaitable[object]], limit: Callable[[], object]
) -> tuple[float, float]:
    """Medians of the processor time of both, taken in turn, with what their ended children used: a busy machine counts less."""
    mine: list[float] = []
    theirs: list[float] = []
    await ours()
    limit()
    for _ in range(rounds):
        start = _processor_s()
        limit()
        middle = _processor_s()
        await ours()
        mine.append(_processor_s() - middle)
        theirs.append(middle - start)
    return statistics.median(mine), statistics.median(theirs)


def _processor_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


async def compared(
    rounds: int, ours: Callable[[], Awaitable[object]], limit: Callable[[], object]
) -> tuple[float, float]:
    """Medians of both, taken in turn."""
    mine: list[float] = []
    theirs: list[float] = []
    await ours()
    limit()
    for _ in range(rounds):
        start = time.perf_counter()
        limit()
        middle = time.perf_counter()
        await ours()
        mine.append(time.perf_counter() - middle)
        theirs.append(middle - start)
    return statistics.median(mine), statistics.median(theirs)
