"""Evidence for a release: the last run of the tests, and what a person tried by hand with a real client.

`python -m support.release_evidence run JUNIT` notes a test run; `record CHECK NOTE` notes a check by hand. Both go to
`.tools/release-evidence.json`, with the commit they hold for; a value that looks like a secret is refused and not written.
"""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

CHECKS = {
    "client": "which MCP client was connected, with its version",
    "exposure": "how it reached the service: stdio, http, or a tunnel provider and its address ending in /mcp",
    "info": "get_computer_info answered in that client",
    "operation": "a read-only computer_operation answered in that client",
    "history": "get_operation_history showed those calls",
    "public_surface": "through the public address nothing but /mcp and OAuth answered, or there was none",
}
MAX_AGE = timedelta(days=14)
_MAX_NOTE = 300
_SECRETS = re.compile(
    r"(?i)-----BEGIN [A-Z ]*PRIVATE KEY|\b(bearer|basic)\s+[A-Za-z0-9+/=._-]{12,}|\bsk-[A-Za-z0-9_-]{8,}|\bgh[pousr]_[A-Za-z0-9]{16,}"
    r"|\bAKIA[0-9A-Z]{12,}|\bxox[abprs]-[A-Za-z0-9-]{8,}|\beyJ[A-Za-z0-9_-]{10,}|://[^/\s:@]+:[^/\s@]+@"
    r"|(token|password|passwd|secret|api[_-]?key|authorization)\b\s*[=:]\s*\S{6,}|\b(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])"
    r"(?!tunnel_)[A-Za-z0-9_-]{32,}\b"
)


class Refused(Exception):
    """The value is not written."""


def file_in(root: Path) -> Path:
    return root / ".tools" / "release-evidence.json"


def read(root: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(file_in(root).read_text())
    except FileNotFoundError:
        return {}
    return found


def record(root: Path, check: str, note: str) -> None:
    """Keep what was seen for one check. Raises Refused."""
    if check not in CHECKS:
        raise Refused(f"there is no check {check!r}; there are: {', '.join(CHECKS)}")
    if not 3 <= len(note) <= _MAX_NOTE:
        raise Refused(f"a note has 3 to {_MAX_NOTE} characters")
    _write(root, {"checks": {**read(root).get("checks", {}), check: {"note": note, **_stamp(root)}}})


def record_run(root: Path, junit: Path) -> None:
    """Keep the numbers of a test run. Raises Refused."""
    # The file was written by pytest a moment ago, on this machine.
    suites = ElementTree.parse(junit).getroot().iter("testsuite")
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in suites:
        for name in counts:
            counts[name] += int(suite.get(name, "0"))
    _write(root, {"run": {**counts, **_stamp(root)}})


def problems(root: Path, *, by_hand: bool) -> list[str]:
    """What is missing or does not hold for the present commit."""
    kept, head = read(root), _head(root)
    if any(_SECRETS.search(str(entry.get("note"))) for entry in kept.get("checks", {}).values()):
        return ["the evidence has a value that looks like a secret"]
    run = kept.get("run")
    found = ["no run of the tests is on record: make test-all"] if run is None else list(_about_run(run, head))
    for check, meaning in CHECKS.items() if by_hand else ():
        entry = kept.get("checks", {}).get(check)
        if entry is None:
            found.append(f"not tried by hand: {check} ({meaning})")
        else:
            found += _about_stamp(f"the check {check}", entry, head)
    return found


def _about_run(run: dict[str, Any], head: str) -> list[str]:
    found = _about_stamp("the run of the tests", run, head)
    if run["failures"] or run["errors"] or not run["tests"]:
        found.append(f"{run['failures'] + run['errors']} of {run['tests']} tests failed in the last run")
    return found


def _about_stamp(what: str, entry: dict[str, Any], head: str) -> list[str]:
    found = []
    if entry["commit"] != head:
        found.append(f"{what} is of commit {entry['commit'][:12]}, not of this one")
    if datetime.now(UTC) - datetime.fromisoformat(entry["at"]) > MAX_AGE:
        found.append(f"{what} is older than {MAX_AGE.days} days")
    return found


def _stamp(root: Path) -> dict[str, str]:
    return {"commit": _head(root), "at": datetime.now(UTC).isoformat(timespec="seconds")}


def _head(root: Path) -> str:
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


def _write(root: Path, change: dict[str, Any]) -> None:
    whole = {**read(root), **change}
    for entry in [*whole.get("checks", {}).values()]:
        if _SECRETS.search(entry["note"]):
            raise Refused("the note has a value that looks like a secret; nothing was written")
    path = file_in(root)
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(whole, indent=1) + "\n")
    fresh.replace(path)


def main(words: list[str]) -> int:
    root = Path(__file__).parents[2]
    try:
        match words:
            case ["run", junit]:
                record_run(root, Path(junit))
            case ["record", check, note]:
                record(root, check, note)
            case _:
                print("\n".join(f"{name:15} {meaning}" for name, meaning in CHECKS.items()))
                return 2
    except Refused as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
