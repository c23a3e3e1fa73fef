"""Which tests are long, as tests/long.txt lists them."""

import re
from fnmatch import translate
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
COLLECTED = pytest.StashKey[list[tuple[str, str]]]()
"""Every test that this run found, before some are left out: its name, and short, long or soak."""


def long_patterns() -> list[str]:
    """The patterns of long.txt."""
    lines = (line.partition("#")[0].strip() for line in (TESTS / "long.txt").read_text().splitlines())
    return [line for line in lines if line]


def fitting(patterns: list[str]) -> "re.Pattern[str]":
    """Matches the names of tests that one of the patterns has; `*` stands for anything, brackets for themselves."""
    return re.compile("|".join(translate(pattern.replace("[", "[[]")) for pattern in patterns))
