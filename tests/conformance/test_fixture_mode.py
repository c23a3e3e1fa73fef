"""Every scored scenario of both revisions, with the suite's fixtures behind the product's own HTTP surface."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import suite
from fixtures.conformance.server import FIXTURE_TOOLS
from support.service import Http, write_config

pytestmark = pytest.mark.clients
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The fixture server's port."""
    write_config(tmp_path / "home", tmp_path / "root")
    process = subprocess.Popen(
        [sys.executable, "-m", "fixtures.conformance", str(tmp_path / "home")],
        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert process.stderr is not None
    try:
        seen = b""
        while not (found := re.search(rb"http://127\.0\.0\.1:(\d+)/mcp", seen)):
            line = process.stderr.readline()
            assert line, f"the fixture server did not start: {seen.decode()}"
            seen += line
        yield int(found.group(1))
    finally:
        process.terminate()
        process.wait(15)
        process.stderr.close()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_every_scored_scenario_passes_and_was_really_exercised(revision: str, port: int, tmp_path: Path) -> None:
    found = suite.run(f"http://127.0.0.1:{port}/mcp", tmp_path / "results", "--requirements", revision)
    judged = set(suite.scored(revision))
    assert len(judged) >= 30
    failed, passed = found.with_status("FAILURE"), found.with_status("SUCCESS")
    assert not judged & failed, found.complaints(judged & failed)
    assert judged <= passed, f"never exercised: {judged - passed}"
    assert found.code == 0, found.output[-2000:]


def test_each_fixture_is_listed_beside_the_products_own_tools(port: int) -> None:
    link = Http(port)
    names = [tool["name"] for tool in link.modern("tools/list")["result"]["tools"]]
    link.close()
    assert names[:1] == ["get_computer_info"]
    assert {str(tool["name"]) for tool in FIXTURE_TOOLS} <= set(names)


@pytest.mark.parametrize("scenario", ["http-header-validation", "http-custom-header-server-validation"])
def test_header_rules_of_2026_hold_though_not_yet_scored(scenario: str, port: int, tmp_path: Path) -> None:
    found = suite.run(
        f"http://127.0.0.1:{port}/mcp", tmp_path / "results", "--scenario", scenario, "--spec-version", "2026-07-28"
    )
    assert not found.with_status("FAILURE"), found.complaints({scenario})
    assert found.with_status("SUCCESS") == {scenario}
