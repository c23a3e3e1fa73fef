"""Checkers that others wrote, against the real service over stdio: nothing found that is not valid by our own schemas."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from support.lines import stream
from support.service import PROGRAM, Service, environment, serving

pytestmark = pytest.mark.clients
BIN = Path(sys.executable).parent
COMMAND = " ".join([*PROGRAM, "stdio"])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("checkers")) as running:
        (running.root / "a.txt").write_text("a\n")
        yield running


def run(service: Service, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    if not (BIN / program).exists():
        pytest.skip(f"{program} is not installed")
    return subprocess.run(
        [str(BIN / program), *arguments], env=environment(service.home), cwd=service.home.parent, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip


def test_mcp_assert_finds_every_tool_healthy(service: Service) -> None:
    done = run(service, "mcp-assert", "audit", "--server", COMMAND)
    assert done.returncode == 0 and "Score: 100%" in done.stdout, done.stdout + done.stderr


def test_mcp_assert_fuzzes_every_tool_without_a_crash(service: Service) -> None:
    done = run(service, "mcp-assert", "fuzz", "--server", COMMAND, "--runs", "30", "--seed", "42")
    assert done.returncode == 0 and "90 runs, 90 passed" in done.stdout, done.stdout + done.stderr
    assert (service.root / "a.txt").read_text() == "a\n"


def test_mcp_fuzzer_finds_nothing(service: Service, tmp_path: Path) -> None:
    """What it calls accepted is either valid by the tool's own schema, or one of the protocol's plain requests."""
    done = run(
        service, "mcp-fuzzer", "--mode", "all", "--phase", "both", "--protocol", "stdio", "--endpoint", COMMAND, "--runs", "10",
        "--runs-per-type", "3", "--timeout", "20", "--seed", "7", "--no-network", "--output-dir", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 transport/protocol anomalies, 0 crashes" in done.stdout, done.stdout
    found = json.loads((tmp_path / "findings.json").read_text())
    findings: list[dict[str, Any]] = found if isinstance(found, list) else found["findings"]
    assert {finding["category"] for finding in findings} <= {"accepted_malformed"}, findings
    with stream(service.home) as lines:
        tools = {tool["name"]: tool["inputSchema"] for tool in lines.ask("tools/list")["result"]["tools"]}
    for finding in findings:
        if finding["kind"] == "tool":
            jsonschema.validate(finding["evidence"]["input"], tools[finding["target"]])
    assert (service.root / "a.txt").read_text() == "a\n"
