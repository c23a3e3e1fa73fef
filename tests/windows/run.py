"""On Windows itself: `py tests/windows/run.py` runs the checks and the suites that `make test-windows` runs under wine.

It needs the package and pytest installed. Nobody has run it on Windows yet.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKS = ("check_facets.py", "check_processes.py")
SUITES = (
    "tests/model", "tests/policy", "tests/operations/file", "tests/undo/test_exchange.py", "tests/computer/test_files_kill.py",
)  # fmt: skip


def main() -> int:
    failed = sum(subprocess.run([sys.executable, str(HERE / check)], check=False).returncode != 0 for check in CHECKS)
    variables = os.environ | {"LEFT_OUT": str(HERE / "left-out.txt"), "PYTHONPATH": str(HERE.parent)}
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "support.left_out",
        "-p",
        "windows.wine_limits",
        "-m",
        "not soak",
    ]
    suites = subprocess.run([*argv, *(sys.argv[1:] or SUITES)], env=variables, cwd=HERE.parents[1], check=False)
    return failed + suites.returncode


if __name__ == "__main__":
    sys.exit(main())
