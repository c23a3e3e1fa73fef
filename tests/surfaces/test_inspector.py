"""The MCP Inspector over stdio and HTTP, in both eras."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from support import node
from support.service import TOKEN, Service, environment, serving

pytestmark = pytest.mark.clients
READ = {"scope": "app", "op": "file.read", "target": "notes.txt"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("inspector"), token=TOKEN) as running:
        (running.root / "notes.txt").write_text("hello")
        yield running


def inspect(service: Service, way: str, *arguments: str) -> tuple[int, Any]:
    """The Inspector's exit code and its JSON."""
    command = [*node.needed(node.inspector), "--cli", "--format", "json", "-q"]
    if way == "stdio":
        words = [
            *command,
            "-e",
            f"COMPUTER_LINKER_HOME={service.home}",
            *arguments,
            "--",
            sys.executable,
            "-m",
            "computer_linker",
            "stdio",
        ]
    else:
        era = way.removeprefix("http-")
        words = [*command, "--server-url", service.url, "--transport", "http", "--protocol-era", era]
        words += ["--header", f"Authorization: Bearer {TOKEN}", *arguments]
    run = subprocess.run(words, capture_output=True, text=True, timeout=240, env=environment(service.home))
    return run.returncode, json.loads(run.stdout or run.stderr.strip().splitlines()[-1])


@pytest.mark.parametrize("way", ["stdio", "http-legacy", "http-modern"])
def test_the_inspector_lists_and_calls(way: str, service: Service) -> None:
    code, listed = inspect(service, way, "--method", "tools/list", "--strict")
    assert code == 0, listed
    names = [tool["name"] for tool in listed["result"]["tools"]]
    assert names == ["get_computer_info", "computer_operation", "get_operation_history"]

    call = ("--method", "tools/call", "--tool-name", "computer_operation", "--tool-args-json", json.dumps(READ))
    code, called = inspect(service, way, *call)
    assert code == 0, called
    assert called["result"]["structuredContent"]["data"]["content"] == "hello"
