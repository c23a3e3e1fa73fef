"""points.txt: every point that once did not work has a test, and the test names it."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LINES = [line for line in (TESTS / "mission/points.txt").read_text().splitlines() if line and not line.startswith("#")]


def test_no_point_is_left_out() -> None:
    """The numbers of the audit, but for what stays as it is and 002-025, of which parts are not built."""
    listed = set(re.findall(r"\d{3}-\d{3}", "\n".join(LINES)))
    assert len(listed) == 74 and len(LINES) > 95


@pytest.mark.parametrize("line", LINES, ids=lambda line: re.sub(r"\s+.*::", " ", line))
def test_the_test_exists_and_names_its_points(line: str) -> None:
    points, _, test = line.rpartition("  ")
    file, _, name = test.partition("::")
    text = (TESTS / file).read_text()
    tree = ast.parse(text)
    (found,) = [node for node in tree.body if getattr(node, "name", None) == name]
    named = (ast.get_source_segment(text, found) or "") + (ast.get_docstring(tree) or "")
    assert [point for point in re.findall(r"\d{3}-\d{3}", points) if point not in named] == []
