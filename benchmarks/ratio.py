"""One measured ratio: ours against a limit in the same run, with what must be reached."""

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
