"""A short version of `make bench FAMILY=honesty`: is what the service says of acts on the distribution's applications true?

The table is written to `.tools/honesty.txt`, and `make test-all` prints it. Nothing here asks the service what happened: see benchmarks/honesty.
"""

from pathlib import Path

import pytest
from benchmarks.honesty import acted, calculators, dialogs, editors, others, toolkits
from benchmarks.honesty.book import Figures

from support.desktop import missing

pytestmark = [pytest.mark.anyio, pytest.mark.desktop, pytest.mark.timeout(900)]
_SHARES = (  # about 150 acts, on what `make test` installs
    (calculators.galculator, 0.3), (editors.mousepad, 0.3), (dialogs.zenity, 0.3), (dialogs.yad, 0.3),
    (toolkits.gtk4, 0.6), (others.xterm, 0.3),
)  # fmt: skip
_ENOUGH = 150


async def test_what_is_said_of_acts_is_true(tmp_path: Path) -> None:
    if lack := [*missing(), *missing("xdotool", "xclip")]:
        pytest.skip(f"not installed: {', '.join(lack)}")
    run = await acted(tmp_path, _SHARES)
    figures = Figures(run.acts)
    table = figures.table()
    kept = Path(__file__).parents[2] / ".tools" / "honesty.txt"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(f"{table}\nleft out: {', '.join(run.absent) or 'nothing'}\n")
    failed = [
        f"{name}: {figure:.3g}, at most {bar:g}"
        for name, figure, bar in figures.rows()
        if name in _BARS and figure > bar
    ]
    assert failed == [] and run.broken == [], f"{table}\n{run.broken}"
    if run.absent:
        pytest.skip(f"{len(run.acts)} acts were judged right; not installed: {', '.join(run.absent)}")
    assert len(run.acts) >= _ENOUGH, table


_BARS = frozenset(name for name, _figure, _bar in Figures([]).rows() if not name.startswith("median"))
"""Every figure but the time of a click, which depends on what else runs."""
