"""The rename and reference fixtures of jedi's source distribution, fetched from PyPI by name, once."""

import re
import subprocess
import sys
import tarfile
from ast import literal_eval
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.node import TOOLS, locked

JEDI = "jedi==0.19.2"
_DEADLINE_S = 300
_SECTION = re.compile(
    r"^# ---+ ?(?P<name>[^\n]*)\n(?P<code>.*?\n)# \+\+\++\n(?P<expected>.*?)(?=^# ---|\Z)", re.MULTILINE | re.DOTALL
)
_AT = re.compile(r"^ *#\? (?P<column>\d+)(?: (?P<kind>error|text))? (?P<arguments>\{.*\})$")
_USES = re.compile(r"^ *#< ?(?P<rest>.*)$")


@dataclass(frozen=True)
class Rename:
    """A section of test/refactor/rename.py: where to rename, and the difference jedi makes."""

    name: str
    code: str
    line: int
    column: int
    new_name: str
    expected: str
    is_error: bool


@dataclass(frozen=True)
class Uses:
    """A test of test/completion/usages.py: a place, and where jedi finds its name used in that file."""

    line: int
    column: int
    places: frozenset[tuple[str, int, int]]


def source() -> Path:
    """The unpacked source distribution."""
    folder = TOOLS / JEDI.replace("==", "-")
    TOOLS.mkdir(exist_ok=True)
    with locked(TOOLS / "lock"):
        if not (folder / ".installed").exists():
            folder.mkdir(exist_ok=True)
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", JEDI]
            try:
                subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_DEADLINE_S)
            except (subprocess.SubprocessError, OSError):
                pytest.skip(f"not installed: {JEDI} (pip could not fetch its source distribution)")
            for archive in folder.glob("jedi-*.tar.gz"):
                with tarfile.open(archive) as packed:
                    packed.extractall(folder, filter="data")
            (folder / ".installed").touch()
    return next(path for path in folder.iterdir() if path.is_dir())


def renames(folder: Path) -> list[Rename]:
    found = []
    for section in _SECTION.finditer((folder / "test/refactor/rename.py").read_text()):
        lines = section["code"].split("\n")
        for number, line in enumerate(lines):
            if at := _AT.match(line):
                arguments: dict[str, Any] = literal_eval(at["arguments"])
                found.append(
                    Rename(
                        section["name"].strip(),
                        section["code"],
                        number + 2,
                        int(at["column"]) + 1,
                        arguments["new_name"],
                        section["expected"],
                        at["kind"] == "error",
                    )
                )
                break
    return found


def uses(folder: Path) -> list[Uses]:
    found = []
    lines = (folder / "test/completion/usages.py").read_text().split("\n")
    for number, line in enumerate(lines):
        if (test := _USES.match(line)) is None:
            continue
        first = re.match(r"(\d+)\s*(.*)", test["rest"])
        code = lines[number + 1]
        column = int(first[1]) if first else len(code)
        listed = (first[2] if first else test["rest"]).strip()
        places = literal_eval(f"[{listed}]") if listed else []
        line_number = number + 2
        named = {
            ("usages", line_number + place[0], place[1] + 1)
            if isinstance(place[0], int)
            else (place[0], place[1], place[2] + 1)
            for place in places
            if place[1] is not ... and place[0] is not None
        }
        found.append(Uses(line_number, column + 1, frozenset(named)))
    return found


def changed_lines(diff: str) -> list[str]:
    """The headers and the removed and added lines of a unified diff; what surrounds them differs with its making."""
    lines = (line.rstrip() for line in diff.split("\n") if line.startswith(("+", "-", "rename ")))
    return [re.sub(r"^(---|\+\+\+) [ab]/", r"\1 ", line) for line in lines]


def named(location: dict[str, Any]) -> tuple[str, int, int]:
    """A location as the fixtures write it: the module, of a stub with `stub:` in front."""
    path, _, ending = str(location["path"]).rpartition(".")
    module = path.replace("/", ".").removesuffix(".__init__")
    return f"stub:{module}" if ending == "pyi" else module, location["line"], location["column"]
