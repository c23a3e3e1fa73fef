"""SECURITY.md's table of what holds says what `sandbox check --json` measures on this machine."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.service import PROGRAM, environment

SECURITY = Path(__file__).parents[2] / "SECURITY.md"
WORDS = {"held": True, "open": False}


def rows() -> dict[str, dict[str, str]]:
    """The cells of each row, by the measured name in its brackets (or its text) and by boundary."""
    lines = [line for line in SECURITY.read_text().splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    kinds = [name.lower() for name in table[0][1:]]
    found = {}
    for first, *cells in table[2:]:
        name = re.search(r"\(`(\w+)`\)", first)
        found[name.group(1) if name else first] = dict(zip(kinds, cells, strict=True))
    return found


def test_every_cell_is_one_of_three_words() -> None:
    cells = {cell for row in rows().values() for cell in row.values()}
    assert cells <= {*WORDS, "not measured"} and {"held", "open"} <= cells


@pytest.mark.skipif(sys.platform != "linux", reason="measured on Linux")
def test_the_table_says_what_is_measured(tmp_path: Path) -> None:
    told = subprocess.run(
        [*PROGRAM, "sandbox", "check", "--json"], env=environment(tmp_path / "home"), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    answer = json.loads(told.stdout)
    held = {entry["kind"]: entry["held"] for entry in answer["boundaries"] if entry["holds"]}
    held["none"] = answer["none"]["held"]
    assert held["none"], told.stderr
    table = rows()
    for kind, measured in held.items():
        # Each measured thing has its row, so that a new one cannot be left out.
        said = {name: WORDS.get(table[name][kind]) for name in measured}
        assert said == measured, kind
    assert not list((tmp_path / "home").glob("sandbox-measure*"))
