"""The product on a stand-in for macOS: it starts there, serves, runs commands, and refuses what it refuses on Linux.

No test here has run on a Mac. The stand-in is this Linux machine without what macOS lacks (macos_shim.py says what).
The mission's points 000-013, 000-162 and 000-225 (the service on macOS), 000-228 (a laboratory for it), 003-001 (the bridge).
"""

import json
import os
import plistlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from macos import environment
from support.waiting import wait_for

_IMPORTS = """
import importlib, pkgutil, sys
import computer_linker
assert sys.platform == "darwin" and not hasattr(__import__("socket"), "SO_PEERCRED")
failed = []
for found in pkgutil.walk_packages(computer_linker.__path__, "computer_linker."):
    others = (".local.linux", ".local.windows", "system.linux", "system.lineage", "system.proc_files")
    if any(other in found.name for other in others) or found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except Exception as error:
        failed.append(f"{found.name}: {error!r}")
print("\\n".join(failed) or "all")
"""
_AS_THE_OWNER = """
import sys
from computer_linker import home
try:
    home.enter(home.state_home(), home.GREETING_CONTROL)
except OSError as error:
    print("refused:", error)
else:
    print("admitted")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment.make(tmp_path_factory.mktemp("macos") / "environment")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("first\n")
    return tmp_path / "state"


@pytest.fixture
def served(python: Path, home: Path) -> "Iterator[Served]":
    assert (
        environment.run(python, "-m", "computer_linker", "setup", str(home.parent / "work"), home=home).returncode == 0
    )
    with Served(python, home) as running:
        yield running


class Served:
    """A client of `stdio`, which starts the service, all on the stand-in."""

    def __init__(self, python: Path, home: Path) -> None:
        self.python, self.home = python, home
        self._next = 0

    def __enter__(self) -> "Served":
        variables = {**os.environ, "COMPUTER_LINKER_HOME": str(self.home), "COMPUTER_LINKER_RENDER": "json"}
        argv = [str(self.python), "-m", "computer_linker", "stdio"]
        self._process = subprocess.Popen(argv, env=variables, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
        self._request("initialize", hello)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
        environment.run(self.python, "-m", "computer_linker", "stop", home=self.home)

    def call(self, op: str, target: str | None = None, **more: object) -> dict[str, Any]:
        arguments = {"scope": "work", "op": op, "target": target, **more}
        result = self._request("tools/call", {"name": "computer_operation", "arguments": arguments})
        return dict(json.loads(result["content"][0]["text"]))

    def _request(self, method: str, params: object) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._next:
                return dict(answer["result"])
        raise AssertionError("stdio ended")


def test_every_module_can_be_imported(python: Path, home: Path) -> None:
    done = environment.run(python, "-c", _IMPORTS, home=home)
    assert (done.stdout.strip(), done.stderr) == ("all", "")


def test_self_test_passes(python: Path, home: Path) -> None:
    done = environment.run(python, "-m", "computer_linker", "self-test", home=home)
    assert done.returncode == 0 and "All steps passed." in done.stderr, done.stdout + done.stderr
    assert "http: get_computer_info" in done.stdout


def test_files_are_read_written_and_put_back(served: Served) -> None:
    notes = served.home.parent / "work" / "notes.txt"
    assert served.call("file.read", "notes.txt")["data"]["content"] == "first\n"
    written = served.call("file.write", "notes.txt", input={"content": "second\n"})
    assert (written["ok"], written["effect"], notes.read_text()) == (True, "confirmed", "second\n")
    undone = served.call("file.undo", None, input={"operationId": "last"})
    assert (undone["ok"], notes.read_text()) == (True, "first\n")
    matches = served.call("file.search", ".", input={"query": "first"})["data"]["matches"]
    assert [match["path"] for match in matches] == ["notes.txt"]


def test_paths_and_links_that_lead_out_are_refused(served: Served) -> None:
    outside = served.home.parent / "outside.txt"
    outside.write_text("secret")
    (served.home.parent / "work" / "link").symlink_to(outside)
    for target in ("../outside.txt", str(outside), "link"):
        refused = served.call("file.read", target)
        assert refused["error"]["code"] == "path_out_of_scope", refused
        assert served.call("file.write", target, input={"content": "x"})["ok"] is False
    assert outside.read_text() == "secret"


def test_a_command_runs_and_its_programs_are_not_the_owner(python: Path, home: Path) -> None:
    setup = ("-m", "computer_linker", "setup", str(home.parent / "work"), "--shell")
    assert environment.run(python, *setup, home=home).returncode == 0
    with Served(python, home) as served:
        told = served.call("command.run", ".", input={"command": ["python3", "-c", "print(6 * 7)"]})
        assert told["data"]["stdout"] == "42\n", told
        assert "none" in str(told["data"]["boundary"])
        tried = served.call("command.run", ".", input={"command": ["python3", "-c", _started_with(python, home)]})
        assert "refused" in tried["data"]["stdout"] and "admitted" not in tried["data"]["stdout"], tried
        started = served.call(
            "command.start", ".", input={"command": ["python3", "-c", "input()"]}, options={"pty": True}
        )
        handle = str(started["data"]["processId"])
        assert served.call("command.stop", handle)["data"]["status"] == "stopped"


def test_the_bridge_answers_this_user(served: Served) -> None:
    assert served.call("file.list", ".")["ok"]
    meta = {
        "schemaVersion": 1,
        "requestId": "5f0c6d3e-6d5c-4a58-9f0b-2f6b1a0f7c11",
        "workspacePath": str(served.home.parent),
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "desktop.health", "params": {"meta": meta}}
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(60)
        link.connect(str(served.home / "bridge.sock"))
        link.sendall(json.dumps(message).encode() + b"\n")
        health = json.loads(link.makefile().readline())["result"]
    assert (health["system"], health["peer"]["pid"]) == ("macos", os.getpid())


def test_what_launchd_would_start_starts_and_answers(python: Path, home: Path) -> None:
    """The mission's point 001-121, as far as it can be shown without launchd."""
    assert (
        environment.run(python, "-m", "computer_linker", "setup", str(home.parent / "work"), home=home).returncode == 0
    )
    printed = environment.run(python, "-m", "computer_linker", "service", "install", "--print", home=home).stdout
    job = plistlib.loads(printed[printed.index("<?xml") :].encode())
    variables = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "COMPUTER_LINKER_HOME": str(home)}
    with subprocess.Popen(job["ProgramArguments"], env=variables | job.get("EnvironmentVariables", {})) as running:
        try:
            wait_for(lambda: (home / "service.sock").exists() or running.poll() is not None)
            answer = environment.run(python, "-m", "computer_linker", "scope", "list", home=home)
            assert (running.poll(), answer.returncode) == (None, 0) and "work" in answer.stdout, answer
        finally:
            running.terminate()


def _started_with(python: Path, home: Path) -> str:
    """Python text that runs the stand-in's interpreter below the command."""
    return (
        "import subprocess; print(subprocess.run("
        f"[{str(python)!r}, '-c', {_AS_THE_OWNER!r}], env={{'COMPUTER_LINKER_HOME': {str(home)!r}, 'PATH': '/usr/bin:/bin'}},"
        " capture_output=True, text=True).stdout)"
    )
