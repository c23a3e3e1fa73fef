"""Writes the history's phrases from the operations: `python -m computer_linker.registry.phrases`. See audit/phrases.py."""

import importlib
import json
from pathlib import Path

from computer_linker.registry.catalog import collect

FILE = Path(__file__).parents[1] / "audit" / "assets" / "phrases.json"
_PACKAGES = ("computer_linker.operations", "computer_linker.owner")


def collected() -> dict[str, str]:
    """The phrase of every operation that the history records. Packages are imported by name: the registry depends on none."""
    operations = [op for name in _PACKAGES for op in collect(importlib.import_module(name)).operations.values()]
    facets: dict[str, str] = importlib.import_module("computer_linker.transports.peer.facet_phrases").PHRASES
    return dict(sorted({**facets, **{op.name: op.did for op in operations if op.did}}.items()))


def as_text(phrases: dict[str, str]) -> str:
    """The file's text."""
    return json.dumps(phrases, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(as_text(collected()), "utf-8")
