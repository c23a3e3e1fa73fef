"""Suites of the product on the stand-in for macOS: what they show of Linux, they show there. `left-out.txt` says what not."""

import os
from pathlib import Path

import pytest

from macos import environment
from support import elsewhere

LEFT_OUT = Path(__file__).parent / "left-out.txt"
SUITES = {
    "model": ["tests/model"],
    "config": ["tests/config"],
    "policy": ["tests/policy"],
    "undo": ["tests/undo"],
    "audit": ["tests/audit"],
    "file": ["tests/operations/file"],
    "files": ["tests/computer/test_files_kill.py", "tests/computer/test_files_open.py"],
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment.make(tmp_path_factory.mktemp("macos") / "environment")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_passes_on_the_stand_in(python: Path, suite: str, tmp_path: Path) -> None:
    argv = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "support.left_out",
        "-m",
        "not soak",
        "-o",
        f"cache_dir={tmp_path}",
    ]
    variables = os.environ | {"LEFT_OUT": str(LEFT_OUT), "PYTHONPATH": str(LEFT_OUT.parents[1])}
    variables.pop("PYTEST_XDIST_WORKER", None)
    outcome = elsewhere.run("macos", suite, [*argv, *SUITES[suite]], variables)
    assert outcome.failed == [] and outcome.passed > 0
