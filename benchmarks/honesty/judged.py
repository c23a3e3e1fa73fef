"""`python -m benchmarks.honesty.judged FILE...`: one table of the acts that several runs kept (HONESTY_ACTS=FILE)."""

import sys
from pathlib import Path

import benchmarks.honesty  # noqa: F401  # finds the tests' support
from benchmarks.honesty.book import Figures, kept

if __name__ == "__main__":
    print(Figures([act for name in sys.argv[1:] for act in kept(Path(name))]).table())
