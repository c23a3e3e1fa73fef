"""The words of this project's own dialect become fewer, never more."""

import json
from pathlib import Path

import pytest

from rules.plain_words import COUNTS, SOURCE, counted


def test_no_word_is_more_frequent_than_written_down_nor_less() -> None:
    kept: dict[str, int] = json.loads(COUNTS.read_text())
    now = counted(sorted(SOURCE.rglob("*.py")))
    grown = {word: (kept[word], now[word]) for word in now if now[word] > kept[word]}
    assert grown == {}, "use the field's words instead; see docs/reference/glossary.md"
    assert now == kept, "fewer: run `python tests/rules/plain_words.py` and commit the lower numbers"


@pytest.mark.parametrize(
    ("text", "word", "count"),
    [
        ('"""Opens the door, then both doors."""', "door", 2),
        ("class TunnelDesk:\n    desk_name = 1", "desk", 2),
        ("def f(lane):\n    lane.lanes = lane", "lane", 2),
        ("outdoor = airplane = 1", "door", 0),
        ("x = 'the door'  # the door", "door", 0),
        ('class A:\n    b: int\n    """Who knows."""', "knows", 1),
    ],
)
def test_a_word_is_counted_where_it_is_made(tmp_path: Path, text: str, word: str, count: int) -> None:
    file = tmp_path / "one.py"
    file.write_text(text)
    assert counted([file])[word] == count
