"""One measured ratio: ours against a limit in the same run, with what must be reached."""

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


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
