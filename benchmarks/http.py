"""HTTP in bad company: an honest client's calls in a hostile crowd, against the bound and against a quiet service."""

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from benchmarks.ratio import Ratio
from support.honest import Honest
from support.hostile import KINDS, crowd
from support.service import TOKEN, serving

BOUND_S = 0.1
ROUNDS = 3
CALLS = 200
_CROWD = ", ".join(f"{count} {kind}" for kind, (count, _) in KINDS.items())


def run() -> list[Ratio]:
    """Every row of the family."""
    quiet, crowded = [], []
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), token=TOKEN) as service:
        honest = Honest(service)
        honest.p95(CALLS)
        for _ in range(ROUNDS):
            quiet.append(honest.p95(CALLS))
            with crowd(service.port):
                crowded.append(honest.p95(CALLS))
        honest.close()
    ours, limit = statistics.median(crowded), statistics.median(quiet)
    return [
        Ratio(
            "file.stat over HTTP in a hostile crowd, 95th percentile, vs what is promised",
            ours,
            BOUND_S,
            1,
            note=_CROWD,
        ),
        Ratio("the same vs the same service left alone", ours, limit, 10),
    ]
