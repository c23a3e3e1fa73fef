"""What is said of the package's extras is true of the package."""

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from computer_linker.extras import Extra, remedy

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "computer_linker"
_NAMED = re.compile(r"computer-linker\[([a-z,]+)\]|'\.\[([a-z,]+)\]'")
_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def existing() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def named(text: str) -> set[str]:
    return {name for found in _NAMED.findall(text) for part in found if part for name in part.split(",")}


@pytest.mark.parametrize("extra", get_args(Extra))
def test_an_extra_that_a_remedy_names_exists_and_is_named_for_both_places(extra: Extra) -> None:
    assert extra in existing()
    assert named(remedy(extra)) == {extra}
    assert f"make install EXTRAS={extra}" in remedy(extra)
    assert f".venv/bin/pip install -e '.[{extra}]'" in remedy(extra)


def test_only_one_place_of_the_source_says_how_to_add_an_extra() -> None:
    others = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "extras.py"]
    assert [str(path.relative_to(ROOT)) for path in others if "computer-linker[" in path.read_text()] == []


def test_the_pages_name_only_extras_there_are() -> None:
    assert {name for page in _PAGES for name in named(page.read_text())} <= existing()
