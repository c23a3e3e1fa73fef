"""The owner at a terminal: commands, and what the history says of them."""

import json
import subprocess
from pathlib import Path
from typing import Any

from support.commands import command


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command(home, *words)


def history(home: Path) -> list[dict[str, Any]]:
    told = json.loads(run(home, "history", "--json").stdout)
    events: list[dict[str, Any]] = told["events"]
    return events
