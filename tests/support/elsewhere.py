"""Suites of the product that another interpreter runs as part of this run, and what became of them.

Each run leaves its numbers in `.tools/elsewhere`. `python -m support.elsewhere SYSTEM ...` prints them: what passed, what was
skipped and why, and the time it took.
"""

import json
import os
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from support.finished import finished

PROJECT = Path(__file__).resolve().parents[2]
NUMBERS = PROJECT / ".tools" / "elsewhere"


@dataclass
class Outcome:
    """The numbers of one run."""

    system: str
    suite: str
    passed: int = 0
    seconds: float = 0.0
    skipped: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def keep(self) -> None:
        NUMBERS.mkdir(parents=True, exist_ok=True)
        name = f"{self.system}-{self.suite.replace('/', '-')}.json"
        (NUMBERS / name).write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False))


def run(
    system: str, suite: str, argv: Sequence[str], env: Mapping[str, str] | None = None, deadline_s: float = 900
) -> Outcome:
    """Run pytest by this command, to which the place of its report is added; the numbers of the run."""
    NUMBERS.mkdir(parents=True, exist_ok=True)
    report = NUMBERS / f"{system}-{suite.replace('/', '-')}-{os.getpid()}.xml"
    started = time.monotonic()
    done = finished(
        [*argv, f"--junitxml={report.relative_to(PROJECT).as_posix()}"], env, deadline_s=deadline_s, cwd=PROJECT
    )
    print((done.stdout + done.stderr).decode(errors="replace")[-20_000:])
    assert report.exists(), "the run ended without a report"
    outcome = _read(system, suite, report)
    report.unlink()
    outcome.seconds = round(time.monotonic() - started, 1)
    outcome.keep()
    assert done.returncode == (1 if outcome.failed else 0), f"pytest ended with {done.returncode}"
    return outcome


def _read(system: str, suite: str, report: Path) -> Outcome:
    outcome, skipped = Outcome(system, suite), Counter[str]()
    # The file was written by pytest a moment ago, on this machine.
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        if (why := case.find("skipped")) is not None:
            skipped[why.get("message", "").removeprefix("Skipped: ")] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            outcome.failed.append(name)
        else:
            outcome.passed += 1
    outcome.skipped = dict(skipped.most_common())
    return outcome


def lines(system: str) -> list[str]:
    """What is on record for a system, for people."""
    found = [json.loads(file.read_text()) for file in sorted(NUMBERS.glob(f"{system}-*.json"))]
    if not found:
        return [f"{system}: nothing on record"]
    shown, reasons = [], Counter[str]()
    for each in found:
        reasons.update(each["skipped"])
        counts = f"{each['passed']} passed, {sum(each['skipped'].values())} skipped, {len(each['failed'])} failed"
        shown.append(f"{system}  {each['suite']}: {counts}, {each['seconds']} s")
    total = sum(each["passed"] for each in found), sum(reasons.values()), sum(len(each["failed"]) for each in found)
    shown.append(f"{system}  in all: {total[0]} passed, {total[1]} skipped, {total[2]} failed")
    return shown + [f"  {count} skipped: {reason}" for reason, count in reasons.most_common()]


if __name__ == "__main__":
    print("\n".join(line for system in sys.argv[1:] for line in lines(system)))
