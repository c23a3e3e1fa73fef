"""`service logs` and `serve --log`, which need no service manager."""

import json
import subprocess
from pathlib import Path

import pytest

from support.service import PROGRAM, TOKEN, environment, wait_for, write_config


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_config(tmp_path / "home", tmp_path / "root", token=TOKEN)
    return tmp_path / "home"


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words], env=environment(home), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip


def test_logs_shows_the_last_lines(home: Path) -> None:
    (home / "service.log").write_text("one\ntwo\nthree\n")
    assert run(home, "service", "logs", "-n", "2").stdout == "two\nthree\n"
    assert json.loads(run(home, "service", "logs", "--json").stdout) == {"lines": ["one", "two", "three"]}


def test_an_empty_log_says_who_writes_there(home: Path) -> None:
    done = run(home, "service", "logs")
    assert (done.returncode, done.stdout) == (0, "")
    assert "Nothing is logged yet" in done.stderr


def test_logs_follows_into_a_new_file(home: Path) -> None:
    log = home / "service.log"
    log.write_text("old\n")
    command = [*PROGRAM, "service", "logs", "--follow"]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(home), text=True, bufsize=1, **pipes) as process:  # type: ignore[call-overload]
        try:
            assert process.stdout.readline() == "old\n"
            with log.open("a") as file:
                file.write("more\n")
            assert process.stdout.readline() == "more\n"
            log.rename(home / "service.log.1")
            log.write_text("fresh\n")
            assert process.stdout.readline() == "fresh\n"
        finally:
            process.terminate()
            process.wait(10)


def test_why_it_did_not_start_is_in_the_log(home: Path) -> None:
    (home / "config.json").write_text('{"nonsense": 1}')
    assert run(home, "serve", "--log", "--port", "0").returncode == 1
    assert "nonsense" in run(home, "service", "logs").stdout


def test_the_log_is_private_and_has_no_token(home: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "serve", "--log", "--port", "0"],
        env=environment(home),
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    ) as service:
        try:
            assert service.stderr is not None and b"serving" in service.stderr.readline()
            wait_for(lambda: (home / "service.log").exists())
        finally:
            service.terminate()
            assert service.wait(30) == 0
    assert (home / "service.log").stat().st_mode & 0o777 == 0o600
    assert TOKEN not in (home / "service.log").read_text()
