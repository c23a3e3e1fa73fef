"""Which tests are long, as tests/long.txt lists them."""

from fnmatch import fnmatchcase
from pathlib import Path

TESTS = Path(__file__).parents[1]


def long_patterns() -> list[str]:
    """The patterns of long.txt."""
    lines = (line.partition("#")[0].strip() for line in (TESTS / "long.txt").read_text().splitlines())
    return [line for line in lines if line]


def fits(name: str, pattern: str) -> bool:
    """Whether a test has this name; `*` in the pattern stands for anything, brackets for themselves."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))
