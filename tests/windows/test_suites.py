"""Suites of the product in Windows Python under wine. `left-out.txt` and `wine_limits.py` say what is skipped there, and why."""

from pathlib import Path

import pytest

from support import elsewhere
from windows import wine

pytestmark = pytest.mark.skipif(wine.program() is None, reason=wine.MISSING)
LEFT_OUT = Path(__file__).parent / "left-out.txt"
SUITES = {"policy": ["tests/model", "tests/policy"]}


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_passes_in_windows_python(suite: str) -> None:
    program = wine.program()
    assert program is not None
    argv = [program, str(wine.python()), "-m", "pytest", "-q", "-p", "support.left_out", "-p", "windows.wine_limits"]
    argv += ["-m", "not soak", "-o", f"cache_dir=C:/pytest-cache-{suite}", f"--basetemp=C:/pytest-{suite}"]
    variables = wine.environment() | {"LEFT_OUT": wine.windows_path(LEFT_OUT)}
    outcome = elsewhere.run("windows", suite, [*argv, *SUITES[suite]], variables, deadline_s=1400)
    assert outcome.failed == [] and outcome.passed > 0
