"""`computer-linker process` lists, reads and stops what clients started."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import commands
from support.road import folder_scope
from support.service import end_service, write_config


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home"
    write_config(folder, tmp_path / "root", scopes=[folder_scope(tmp_path / "root", allowedCommands=["*"])])
    yield folder
    end_service(folder)


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return commands.command(home, *words)


def test_list_read_follow_and_stop(home: Path) -> None:
    assert run(home, "process", "list").stdout == "No processes.\n"
    argv = json.dumps(["sh", "-c", "echo first; echo problem >&2; read x; echo last"])
    started = run(home, "op", "command.start", ".", "--input", f"command={argv}", "--option", "name=worker", "--json")
    process = json.loads(started.stdout)["data"]["processId"]
    listed = json.loads(run(home, "process", "list", "--json").stdout)["processes"]
    assert [(entry["processId"], entry["scope"], entry["status"]) for entry in listed] == [(process, "app", "running")]
    assert "worker" in run(home, "process", "list").stdout
    run(home, "op", "command.send", process, "--input", "text=x\n")
    run(home, "op", "command.send", process, "--input", "key=ctrl+d")
    read = run(home, "process", "read", process, "--follow")
    assert read.stdout == "first\nlast\n" and read.stderr.startswith("problem\n") and "exit code 0" in read.stderr
    nap = json.loads(run(home, "op", "command.start", ".", "--input", "command=sleep 91.5", "--json").stdout)["data"][
        "processId"
    ]
    assert "stopped" in run(home, "process", "stop", nap[:14]).stdout
    end_service(home)
    remembered = json.loads(run(home, "process", "list", "--json").stdout)["processes"]
    assert {entry["processId"]: entry["status"] for entry in remembered} == {process: "exited", nap: "stopped"}


def test_a_process_that_is_not_there(home: Path) -> None:
    told = run(home, "process", "stop", "proc_none")
    assert told.returncode == 1 and told.stderr.startswith("error: no process")
