"""The owner at a terminal: commands, and what the history says of them."""

import json
import subprocess
from pathlib import Path
from typing import Any

from support.service import PROGRAM, environment


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words], env=environment(home), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240
    )


def history(home: Path) -> list[dict[str, Any]]:
    told = json.loads(run(home, "history", "--json").stdout)
    events: list[dict[str, Any]] = told["events"]
    return events
