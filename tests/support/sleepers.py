"""Calls that take a minute unless they are cancelled, and a look at whether their process still runs."""

from pathlib import Path
from typing import Any

from support.service import is_alive


def sleeping(marker: str) -> dict[str, Any]:
    """A tools/call whose child has `marker` on its command line."""
    arguments = {"scope": "app", "op": "command.run", "target": ".", "input": {"command": ["sleep", f"60.{marker}"]}}
    return {"name": "computer_operation", "arguments": arguments}


def running(marker: str) -> list[int]:
    """The processes whose command line has the marker."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if f"60.{marker}".encode() in line and is_alive(int(entry.name)):
                found.append(int(entry.name))
    return found
