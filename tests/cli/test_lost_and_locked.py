"""Commands whose service ends before it answers, or cannot start because a command has the state folder."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from computer_linker import home as places
from support import commands
from support.road import folder_scope
from support.service import PROGRAM, end_service, environment, is_alive, lock_holder, rpc, wait_for, write_config

_HOLD_S = 2.0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home"
    write_config(folder, tmp_path / "root", scopes=[folder_scope(tmp_path / "root", allowedCommands=["*"])])
    yield folder
    end_service(folder)


def run(home: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return commands.command(home, *words, stdin=stdin)


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Another process has the lock, as a command that needs no service does, and ends by itself."""
    hold = "import sys, time; from computer_linker.home import take_lock; assert take_lock(sys.argv[1]) is not None; "
    hold += f"print(flush=True); time.sleep({_HOLD_S})"
    with subprocess.Popen([sys.executable, "-c", hold, str(home)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"\n"
        yield


def test_a_request_whose_service_ended_is_not_run_again(home: Path, tmp_path: Path) -> None:
    ran = tmp_path / "root" / "ran"
    command = "command=sh -c 'echo once >> ran; sleep 60'"
    with subprocess.Popen(
        [*PROGRAM, "op", "command.run", "--input", command], env=environment(home), stderr=subprocess.PIPE, text=True
    ) as asking:
        wait_for(lambda: ran.exists() and ran.read_text() == "once\n")
        end_service(home)
        _, errors = asking.communicate(timeout=240)
    assert asking.returncode == 1
    assert errors.startswith("error: the connection was lost; what came of it is unknown: computer-linker history\n")
    assert ran.read_text() == "once\n"
    with pytest.raises(OSError):
        places.connect(str(home))


def test_a_service_starts_once_the_command_that_has_the_lock_has_ended(home: Path) -> None:
    with locked(home):
        done = run(home, "op", "file.list", ".")
    assert done.returncode == 0, done.stderr


def test_the_shim_starts_a_service_once_the_lock_is_free(home: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    with locked(home):
        done = run(home, "stdio", stdin=json.dumps(rpc(1, "initialize", hello)) + "\n")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]


def test_serve_waits_for_a_command_that_has_the_lock(home: Path) -> None:
    with (
        locked(home),
        subprocess.Popen(
            [*PROGRAM, "serve", "--port", "0"], env=environment(home), stderr=subprocess.PIPE, text=True
        ) as serving,
    ):
        assert serving.stderr is not None
        try:
            assert any("/mcp" in line for line in serving.stderr), "it serves"
            assert lock_holder(home) == serving.pid
        finally:
            serving.terminate()


def test_a_look_whether_a_service_listens_leaves_no_traceback_in_its_log(home: Path) -> None:
    assert run(home, "op", "file.list", ".").returncode == 0
    for _ in range(20):
        places.connect(os.fspath(home)).close()
    pid = lock_holder(home)
    assert run(home, "stop").returncode == 0
    wait_for(lambda: pid is not None and not is_alive(pid))
    assert "Traceback" not in (home / places.LOG_NAME).read_text()
