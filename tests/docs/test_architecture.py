"""The pages that lead a reader through the code name files that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "computer_linker"
_NAMED = re.compile(r"`([a-z_]+(?:/[a-z0-9_*]+)*(?:/|\.py))`")


@pytest.mark.parametrize("page", ["docs/explanation/architecture.md", "docs/reference/glossary.md"])
def test_every_file_that_is_named_is_there(page: str) -> None:
    names = set(_NAMED.findall((ROOT / page).read_text()))
    assert len(names) > 15
    assert [name for name in sorted(names) if not any(SOURCE.glob(name.rstrip("/")))] == []


def test_the_layers_are_those_of_the_import_contract() -> None:
    """Point 001-119."""
    contract = (ROOT / "pyproject.toml").read_text().split("layers = [")[1].split("]")[0]
    layers = re.findall(r"[a-z_]+", contract)
    told = (
        (ROOT / "docs/explanation/architecture.md").read_text().split("Imports go down only:")[1].split(". A test")[0]
    )
    assert re.findall(r"`([a-z_]+)`", told) == [name for name in layers if name != "extras"]
