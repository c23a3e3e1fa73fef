"""Runs a script with this project's code as an ordinary user, where the tests run as root."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
_PYTHON = "/usr/bin/python3"
_AS_NOBODY: dict[str, Any] = {
    "user": NOBODY, "group": NOBODY, "extra_groups": [], "capture_output": True, "text": True, "timeout": 240,
}  # fmt: skip


@contextmanager
def place_of_another() -> Iterator[Path]:
    """A folder that belongs to that user. Skips where it cannot run this code."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    try:
        can = subprocess.run(
            [_PYTHON, "-c", "import computer_linker.registry.catalog"], env=_environment(), **_AS_NOBODY
        )
    except OSError:
        can = None
    if can is None or can.returncode != 0:
        pytest.skip("another user cannot run this code with the system's interpreter")
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chown(place, NOBODY, NOBODY)
        yield Path(place)


def run_as_another(script: str, place: Path, *arguments: str, **more: str) -> str:
    """What the script prints; `more` are further variables of its environment."""
    environ = {**_environment(), "HOME": str(place), **more}
    ran = subprocess.run([_PYTHON, "-c", script, str(place), *arguments], env=environ, **_AS_NOBODY)
    assert ran.returncode == 0, ran.stderr
    return str(ran.stdout)


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONDONTWRITEBYTECODE": "1"}
