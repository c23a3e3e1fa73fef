"""The race harness: 20 seconds in the suite, ten minutes in `make soak`."""

import os
import random
import shutil
from pathlib import Path

import pytest

from attacks.race_harness import run

SEED = int(os.environ.get("COMPUTER_LINKER_SEED") or random.SystemRandom().randrange(1 << 32))
_SOAK = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        ("bubblewrap", 12),
        ("landlock", 8),
        pytest.param("bubblewrap", 400, marks=_SOAK),
        pytest.param("landlock", 200, marks=_SOAK),
    ],
)
def test_nothing_gets_through_while_commands_rearrange_everything(tmp_path: Path, kind: str, seconds: int) -> None:
    if kind == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed here")
    # The folder is named by its real path, as the checks compare it.
    report = run(tmp_path.resolve(), kind, seconds, SEED)
    print(report)
    assert report.runs >= seconds / 4, f"too few commands ran for a verdict\n{report}"
    assert all(boundary.startswith(kind) for boundary in report.boundaries), report
    assert not report.hits, str(report)
