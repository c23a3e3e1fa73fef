"""Runs the official conformance suite against a server and reads what it found."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import node

_DEADLINE_S = 180


@dataclass(frozen=True)
class Run:
    """How a run ended, what it printed, and its checks by scenario."""

    code: int
    output: str
    checks: dict[str, list[dict[str, Any]]]

    def complaints(self, scenarios: set[str]) -> str:
        """What the suite found wrong with these scenarios, for the reader of a failed test."""
        lines = [
            f"{name}: {check['id']}: {check.get('errorMessage')}"
            for name in sorted(scenarios)
            for check in self.checks.get(name, [])
            if check["status"] == "FAILURE"
        ]
        return "\n".join([*lines, self.output[-2000:]])

    def with_status(self, status: str) -> set[str]:
        """Scenarios with at least one check of this status."""
        return {name for name, checks in self.checks.items() if any(check["status"] == status for check in checks)}


def command() -> list[str]:
    """The suite's command; skips the test, naming npm, where it cannot be installed."""
    return node.needed(node.conformance)


def run(url: str, results: Path, *arguments: str) -> Run:
    """One run of the server scenarios against `url`."""
    done = subprocess.run(
        [*command(), "server", "--url", url, "-o", str(results), *arguments],
        capture_output=True, text=True, timeout=_DEADLINE_S,
    )  # fmt: skip
    checks: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(results.glob("**/checks.json")):
        name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\dZ.:-]+$", "", file.parent.name)
        checks.setdefault(name, []).extend(json.loads(file.read_text()))
    return Run(done.returncode, done.stdout + done.stderr, checks)


def scored(revision: str) -> list[str]:
    """The server scenarios a revision is judged by."""
    listing = subprocess.run(
        [*command(), "list", "--server", "--requirements", revision], capture_output=True, text=True, timeout=240
    )
    section = listing.stdout.partition("Server scenarios")[2].partition("Client scenarios")[0]
    return re.findall(r"^  - (\S+)$", section, re.MULTILINE)
