"""The Windows facets against a real Notepad, and processes in job objects: each check runs inside Windows Python under wine."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.desktop import Desktop, missing, x11_desktop
from support.finished import finished
from windows import wine

pytestmark = pytest.mark.skipif(wine.program() is None, reason=wine.MISSING)
FACETS = ("windows", "screen", "typing", "pasting", "clipboard", "pointer", "processes", "closing")
PROCESSES = ("output", "gate", "tree", "refusals", "count", "own_limits", "cap_of_an_ended_process")


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    if lack := missing("Xvfb", "openbox"):
        pytest.skip(f"not installed: {', '.join(lack)}")
    with x11_desktop(tmp_path_factory.mktemp("wine-desktop"), with_bus=False) as opened:
        yield opened


@cache
def told_by(check: str, display: str) -> str:
    """What a script of checks prints; it runs once."""
    program = wine.program()
    assert program is not None
    argv = [program, str(wine.python()), wine.windows_path(Path(__file__).parent / check)]
    done = finished(argv, wine.environment(display), deadline_s=400)
    return (done.stdout + done.stderr).decode(errors="replace")


@pytest.mark.parametrize("name", FACETS)
def test_a_facet_works_on_a_real_window(desktop: Desktop, name: str) -> None:
    told = told_by("check_facets.py", desktop.display)
    assert f"ok {name} " in told, told


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_is_held_by_its_job(name: str) -> None:
    told = told_by("check_processes.py", "")
    for line in told.splitlines():
        if line.startswith(f"skipped {name}: "):
            pytest.skip(line.partition(": ")[2])
    assert f"ok {name} " in told, told
