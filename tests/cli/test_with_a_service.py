"""Commands that meet a real service."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from computer_linker import home as places
from computer_linker.config.load import load
from support import commands
from support.service import PROGRAM, Http, end_service, environment, serving
from support.waiting import wait_for


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home"
    yield folder
    end_service(folder)


def run(home: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """One command line in a process of its own."""
    return commands.command(home, *words, stdin=stdin)


def nothing_listens(home: Path) -> None:
    with pytest.raises(OSError):
        places.connect(str(home))


@contextmanager
def started(home: Path, *words: str) -> Iterator[list[str]]:
    """`start` until its welcome is out; the lines of the welcome."""
    command = [*PROGRAM, "start", *words, "--port", "0"]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment(home), text=True, **pipes) as process:  # type: ignore[call-overload]
        lines: list[str] = []
        try:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if "Ctrl-C" in line:
                    break
            yield lines
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def test_start_says_in_few_lines_what_is_exposed_and_how_to_connect(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    with started(home, str(tmp_path / "app")) as lines:
        assert 0 < len(lines) <= 15
        text = "\n".join(lines)
        assert str(tmp_path / "app") in text
        for client in ("client setup claude --write", "codex mcp add", "inspector"):
            assert client in text
        token = load(home).owner_token or ""
        assert token and token not in text
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/mcp", text).group(1))  # type: ignore[union-attr]
        http = Http(port, token)
        try:
            assert http.control("get_computer_info", include=["identity"])["machineId"] == load(home).machine_id
        finally:
            http.close()
        assert json.loads(run(home, "status", "--json").stdout)["service"]["localUrl"].endswith(f":{port}/mcp")


def test_a_second_start_is_refused_in_one_line(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    with started(home, str(tmp_path / "app")):
        done = run(home, "start", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-2].startswith("error: a service already runs")
    assert done.stderr.splitlines()[-1].startswith("hint: ")


def test_start_with_another_folder_adds_it_to_the_service_that_runs(home: Path, tmp_path: Path) -> None:
    for name in ("app", "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes" / "a.txt").write_text("hello\n")
    with started(home, str(tmp_path / "app")):
        done = run(home, "start", str(tmp_path / "notes"))
        again = run(home, "start", str(tmp_path / "notes"))
        assert (again.returncode, again.stdout) == (0, "") and again.stderr.splitlines()[-1].endswith(
            "serves it already."
        )
        assert "uses it from now on" in run(home, "setup", str(tmp_path / "notes"), "--read-only").stdout
        read = run(home, "op", "file.read", "a.txt", "--scope", "notes")
    assert (done.returncode, done.stdout) == (0, "")
    assert "serves it from now on" in done.stderr.splitlines()[-1]
    assert (read.returncode, read.stdout) == (0, "hello\n")


def test_a_refused_right_comes_with_the_line_that_grants_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    run(home, "setup", str(tmp_path / "app"), "--read-only", "--shell")
    write = ["op", "file.write", "new.txt", "--input", "content=x"]
    refused = run(home, *write)
    assert refused.returncode == 1 and not (tmp_path / "app" / "new.txt").exists()
    hint = refused.stderr.splitlines()[-1]
    assert hint == "hint: to allow it: computer-linker scope edit app --allow fs:write"
    assert run(home, *hint.partition("computer-linker ")[2].split()).returncode == 0
    assert run(home, *write).returncode == 0


def test_a_refused_command_names_what_would_allow_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    run(home, "setup", str(tmp_path / "app"))
    touch = ["op", "command.run", "--input", "command=touch made"]
    assert run(home, *touch).stderr.splitlines()[-1].endswith(": computer-linker setup FOLDER --shell")
    run(home, "setup", str(tmp_path / "app"), "--shell")
    hint = run(home, *touch).stderr.splitlines()[-1]
    assert 'computer-linker scope allow app "' in hint
    assert not (tmp_path / "app" / "made").exists()
    assert run(home, "scope", "edit", "app", "--policy", 'allowedCommands=["touch *"]').returncode == 0
    assert run(home, *touch).returncode == 0 and (tmp_path / "app" / "made").exists()


def test_a_program_that_fails_or_runs_out_of_time_is_told_beside_its_output(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    run(home, "setup", str(tmp_path / "app"), "--shell")
    program = "command=" + json.dumps(["python3", "-c", "print('out'); raise SystemExit(3)"])
    failed = run(home, "op", "command.run", "--input", program)
    assert (failed.returncode, failed.stdout, failed.stderr) == (0, "out\n", "(exit code 3)\n")
    waits = "command=" + json.dumps(["python3", "-c", "import time; time.sleep(60)"])
    late = run(home, "op", "command.run", "--input", waits, "--option", "timeoutSeconds=0.2")
    assert (late.returncode, late.stdout) == (0, "") and "its time was over" in late.stderr
    assert "exit code" not in run(home, "op", "command.run", "--input", "command=python3 --version").stderr
    (tmp_path / "app" / "long.txt").write_text("one\ntwo\n")
    cut = run(home, "op", "file.read", "long.txt", "--option", "maxBytes=4")
    assert cut.stdout == "one\n" and cut.stderr.startswith("(cut: ")


def test_an_address_open_to_others_without_a_token_does_not_start(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    run(home, "setup", str(tmp_path / "app"))
    run(home, "config", "set", "ownerToken", "null")
    done = run(home, "serve", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 1
    assert "error: " in done.stderr and "token" in done.stderr
    nothing_listens(home)


def test_a_config_others_can_write_starts_nothing(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    run(home, "setup", str(tmp_path / "app"))
    (home / "config.json").chmod(0o666)
    for words in (["start"], ["serve"], ["stdio"], ["op", "file.list", ".", "--scope", "app"]):
        done = run(home, *words)
        assert done.returncode != 0, words
        assert "other users" in done.stderr, (words, done.stderr)
        assert done.stdout == ""
    nothing_listens(home)


def test_doctor_looks_at_the_rest_when_others_can_write_the_config_of_a_running_service(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "app").mkdir()
    with started(home, str(tmp_path / "app")):
        (home / "config.json").chmod(0o666)
        looked = run(home, "doctor")
        assert looked.returncode == 1, looked.stderr
        assert "can be written by other users" in looked.stdout and "doctor --fix" in looked.stdout
        assert "every request is refused until the config is repaired" in looked.stdout and "python" in looked.stdout
        refused = run(home, "op", "file.list", ".", "--scope", "app")
        assert refused.returncode == 1 and "other users" in refused.stderr
        assert "Made config.json private" in run(home, "doctor", "--fix").stdout
        assert "refused until" not in run(home, "doctor").stdout
        assert run(home, "op", "file.list", ".", "--scope", "app").returncode == 0


def test_op_starts_a_service_reads_writes_and_is_refused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "notes.txt").write_text("hello\n")
    (tmp_path / "outside.txt").write_text("outside\n")
    run(home, "setup", str(tmp_path / "app"))
    read = run(home, "op", "file.read", "notes.txt")
    assert (read.returncode, read.stdout, read.stderr) == (0, "hello\n", "")
    written = run(home, "op", "file.write", "new.txt", "--input", "content=@-", "--json", stdin="from stdin\n")
    assert json.loads(written.stdout)["effect"] == "confirmed", written.stdout
    assert (tmp_path / "app" / "new.txt").read_text() == "from stdin\n"
    refused = run(home, "op", "file.read", "../outside.txt")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: path_out_of_scope: ")
    envelope = run(home, "op", "file.read", "../outside.txt", "--json")
    assert (envelope.returncode, json.loads(envelope.stdout)["error"]["code"]) == (1, "path_out_of_scope")
    assert run(home, "op", "file.read", "notes.txt", "--option", "maxBytes=many").returncode == 1


def test_stop_ends_the_service(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    with started(home, str(tmp_path / "app")):
        assert run(home, "stop").returncode == 0
    assert "No service runs." in run(home, "stop").stderr
    assert json.loads(run(home, "status", "--json").stdout)["service"]["running"] is False


def test_a_rotated_token_and_an_edited_scope_hold_without_a_restart(tmp_path: Path) -> None:
    old = "old-owner-token-0123456789abcdef"
    with serving(tmp_path, token=old) as service:
        (service.root / "notes.txt").write_text("hello\n")
        call = {"scope": "app", "op": "file.read", "target": "notes.txt"}
        http = service.http()
        assert http.control("computer_operation", **call)["ok"] is True
        run(service.home, "scope", "edit", "app", "--deny", "fs:read")
        assert http.control("computer_operation", **call)["error"]["code"] == "permission_denied"
        run(service.home, "token", "rotate")
        assert http.send("POST", "/api/v1/control", {"action": "get_computer_info"})[0] == 401
        http.token = load(service.home).owner_token
        assert http.control("get_computer_info", include=["identity"])["machineName"] == "test"
        http.close()


def test_a_config_broken_while_serving_takes_away_what_it_changes_and_no_more(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        (service.root / "notes.txt").write_text("hello\n")
        call = {"scope": "app", "op": "file.read", "target": "notes.txt"}
        http = service.http()
        good = (service.home / "config.json").read_text()
        assert http.control("computer_operation", **call)["ok"] is True
        (service.home / "config.json").write_text(good.replace('"machineName"', '"machineNmae"'))
        shown = run(service.home, "scope", "list")
        assert "did you mean `machineName`" in shown.stderr
        assert http.control("computer_operation", **call)["ok"] is True
        changed = json.loads(good)
        changed["scopes"][0]["capabilities"] = ["fs:read", "fs:everything"]
        (service.home / "config.json").write_text(json.dumps(changed))

        def asked() -> tuple[int, bytes]:
            return http.send("POST", "/api/v1/control", {"action": "computer_operation", **call})

        wait_for(lambda: asked()[0] != 200)
        status, body = asked()
        assert status == 403 and b"hello" not in body
        (service.home / "config.json").write_text(good)
        assert wait_for(lambda: asked()[0] == 200)
        http.close()


def test_self_test_passes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Points 000-211 and 001-086."""
    place = tmp_path / "temporary"
    place.mkdir()
    env = {**os.environ, "TMPDIR": str(place), "COMPUTER_LINKER_HOME": str(tmp_path / "untouched")}
    command = [sys.executable, "-m", "computer_linker", "self-test", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=110, check=False)
    answer = json.loads(done.stdout)
    assert [step for step in answer["steps"] if not step["ok"]] == []
    assert (done.returncode, answer["ok"]) == (0, True)
    names = [step["step"] for step in answer["steps"]]
    assert {"http: healthz", "http: JSON API", "http: file.list in test"} <= set(names)
    assert any(name.startswith("screen (no pixels): ") for name in names)
    assert list(place.iterdir()) == []
    assert not (tmp_path / "untouched").exists()


def test_client_smoke_says_that_clients_are_paused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    run(home, "setup", str(tmp_path / "app"))
    run(home, "pause")
    done = run(home, "client", "smoke", "--json")
    steps = {step["step"]: step for step in json.loads(done.stdout)["steps"]}
    assert done.returncode == 1
    for step in ("get_computer_info", "file.list in app"):
        assert not steps[step]["ok"] and "paused every client" in steps[step]["reason"], steps


def test_client_smoke_over_http_says_that_clients_are_paused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    with started(home, str(tmp_path / "app")):
        run(home, "pause")
        steps = json.loads(run(home, "client", "smoke", "--over", "http", "--json").stdout)["steps"]
    refused = [step for step in steps if not step["ok"]]
    assert refused and all("paused every client" in step["reason"] for step in refused), steps


def test_client_smoke_reads_each_folder_scope(home: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    run(home, "setup", str(tmp_path / "app"))
    done = run(home, "client", "smoke", "--json")
    assert [step["step"] for step in json.loads(done.stdout)["steps"]][-1] == "file.list in app"
    assert done.returncode == 0
