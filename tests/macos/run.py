"""Runs suites on the stand-in for macOS, or with pytest's arguments others: `make test-macos-shim`, `SUITES=tests/config`."""

import shutil
import subprocess
import sys
from pathlib import Path

from macos import environment

PROJECT = Path(__file__).resolve().parents[2]
SUITES = ("tests/config", "tests/model", "tests/policy", "tests/undo", "tests/operations/file")
"""What is the product's own work and needs no Linux program around it; the rest is shown by test_stand_in.py."""


def main() -> int:
    folder = PROJECT / ".tools" / "macos"
    shutil.rmtree(folder, ignore_errors=True)
    python = environment.make(folder)
    chosen = sys.argv[1:] or list(SUITES)
    argv = [str(python), "-m", "pytest", "-q", "-o", f"cache_dir={folder / 'cache'}", "-m", "not soak", *chosen]
    return subprocess.run(argv, cwd=PROJECT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
