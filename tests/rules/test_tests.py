"""The rules of the tests themselves."""

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest

from support.long_tests import COLLECTED, fitting, long_patterns

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))
HELPER = TESTS / "support" / "waiting.py"
_NO_REASON = re.compile(r"#\s*(noqa|type:|fmt:)")


def bare_sleeps(text: str) -> list[int]:
    """The lines that sleep and do not say why."""
    if "sleep" not in text:
        return []
    lines = {
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "sleep"
    }
    if not lines:
        return []
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    explained = {one.start[0] for one in tokens if one.type == tokenize.COMMENT and not _NO_REASON.match(one.string)}
    return sorted(lines - explained)


def test_a_test_waits_for_an_event_or_says_why_it_sleeps() -> None:
    bare = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in FILES
        if path != HELPER
        for line in bare_sleeps(path.read_text())
    ]
    assert bare == [], "use support.waiting, or give the reason on the line"


def test_a_sleep_without_a_reason_is_found() -> None:
    text = "import time\ntime.sleep(1)\ntime.sleep(2)  # the slow disk itself\ntime.sleep(3)  # noqa: S1\nsleep(4)\n"
    assert bare_sleeps(text) == [2, 4, 5]


_LIST = r"""
import sys
import pytest
from support.long_tests import COLLECTED


class Listed:
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for name, kind in session.config.stash[COLLECTED]:
            print("@", kind, name, sep="\t")


sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:xdist", sys.argv[1]], plugins=[Listed()]))
"""


def every_test(config: pytest.Config) -> list[tuple[str, str]]:
    """Each test's name and kind: of this run where it has every file, for to collect them all once more is slow."""
    collected = config.stash[COLLECTED]
    if {name.partition("::")[0] for name, _ in collected} >= {
        str(path.relative_to(TESTS)) for path in FILES if _is_test(path)
    }:
        return collected
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    listed = subprocess.run(
        [sys.executable, "-c", _LIST, str(TESTS)], cwd=TESTS.parent, env=env, capture_output=True, text=True
    )
    assert listed.returncode == 0, listed.stdout[-2000:]
    lines = [line.split("\t")[1:] for line in listed.stdout.splitlines() if line.startswith("@\t")]
    return [(name, kind) for kind, name, *_ in lines]


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_") and "windows" not in path.parts


def test_the_short_run_has_every_area_and_the_long_one_what_is_listed(request: pytest.FixtureRequest) -> None:
    every = every_test(request.config)
    folders = {Path(name.partition("::")[0]).parent for name, kind in every if kind != "soak"}
    assert folders == {Path(name.partition("::")[0]).parent for name, kind in every if kind == "short"}
    counts = Counter(kind for _, kind in every)
    assert counts["short"] >= 3 * counts["long"], "most tests are for every change"
    long = [name for name, kind in every if kind == "long"]
    assert [pattern for pattern in long_patterns() if not any(map(fitting([pattern]).match, long))] == []


def test_nothing_runs_failures_again() -> None:
    assert not re.search(r"last-failed|--lf\b|reruns|flaky", (TESTS.parent / "Makefile").read_text())
    assert [
        path.name for path in FILES if re.search(r"mark\.(flaky|xfail)\b", path.read_text()) and path != Path(__file__)
    ] == []


def test_ci_runs_the_rules_and_every_test() -> None:
    text = (TESTS.parent / ".ci" / "run").read_text()
    assert re.findall(r"\bmake ([a-z-]+)", text) == ["check", "test-all"]
