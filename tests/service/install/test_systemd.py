"""Service mode with a real `systemd --user`: installed, restarted after kill -9, upgraded, looked at, removed."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.tunnels.record import read
from support.oauth import Browser, tokens
from support.service import PROGRAM, TOKEN, Http, is_alive, wait_for, write_config
from support.standins import install
from support.systemd import Manager, user_manager, why_not

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=f"a systemd user manager cannot be had: {why_not()}"),
    pytest.mark.timeout(300),
]


@pytest.fixture
def manager() -> Iterator[Manager]:
    with user_manager() as running:
        yield running


@pytest.fixture
def home(manager: Manager, tmp_path: Path) -> Path:
    """A state folder whose name has all that a unit file could trip over."""
    folder = tmp_path / 'state $HOME %h "q" it\'s'
    write_config(folder, tmp_path / "root", token=TOKEN)
    return folder


def cli(manager: Manager, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words], env={**manager.environment, "COMPUTER_LINKER_HOME": str(home)}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def told(manager: Manager, home: Path, *words: str) -> dict[str, Any]:
    done = cli(manager, home, *words, "--json")
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def port_of(url: str) -> int:
    return int(url.removesuffix("/mcp").rpartition(":")[2])


def test_installed_it_serves_and_comes_back_after_kill_9(manager: Manager, home: Path) -> None:
    made = told(manager, home, "service", "install")
    assert (made["change"], made["file"]) == ("written", str(manager.unit))
    assert made["content"] == manager.unit.read_text()
    assert TOKEN not in made["content"]
    http = Http(port_of(made["localUrl"]), TOKEN)
    assert http.control("get_computer_info", include=["identity"])["machineId"] == "test-machine"
    http.close()
    first = manager.main_pid()
    os.kill(first, signal.SIGKILL)
    second = wait_for(lambda: (pid := manager.main_pid()) not in (0, first) and pid, seconds=60, step_s=0.1)
    wait_for(lambda: told(manager, home, "service", "status")["localUrl"], seconds=60, step_s=0.1)
    seen = told(manager, home, "service", "status")
    assert (seen["state"], seen["pid"], seen["restarts"], seen["enabled"], seen["upToDate"]) == (
        "active", second, 1, True, True,
    )  # fmt: skip
    logs = cli(manager, home, "service", "logs")
    assert logs.returncode == 0
    assert (home / "service.log").stat().st_mode & 0o777 == 0o600
    removed = told(manager, home, "service", "uninstall")
    assert removed["removed"] and not manager.unit.exists()
    wait_for(lambda: not is_alive(second))
    assert (home / "config.json").exists()
    assert told(manager, home, "service", "status")["state"] == "not installed"


def test_installed_again_it_keeps_what_was_managed(manager: Manager, home: Path) -> None:
    url = told(manager, home, "service", "install")["localUrl"]
    client, _ = tokens(Browser(url.removesuffix("/mcp")))
    http = Http(port_of(url), TOKEN)
    assert http.control("computer_operation", scope="app", op="file.list", target=".")["ok"]
    http.close()
    first = manager.main_pid()
    manager.unit.write_text(manager.unit.read_text().replace("RestartSec=2", "RestartSec=9"))
    assert told(manager, home, "service", "status")["upToDate"] is False
    again = told(manager, home, "service", "install")
    assert again["change"] == "rewritten"
    assert manager.main_pid() not in (0, first)
    assert told(manager, home, "service", "install")["change"] == "unchanged"
    listed = told(manager, home, "sessions", "list")["sessions"]
    assert [(kept["clientId"], kept["standing"]) for kept in listed] == [(client, "live")]
    history = told(manager, home, "history", "--view", "last")
    assert any(event["op"] == "file.list" for event in history["events"])


def test_a_command_still_runs_in_its_sandbox(manager: Manager, home: Path) -> None:
    url = told(manager, home, "service", "install")["localUrl"]
    http = Http(port_of(url), TOKEN)
    try:
        answer = http.control(
            "computer_operation", scope="app", op="command.run", target=".", input={"command": ["/bin/echo", "held"]}
        )
        assert answer["ok"], answer
        assert answer["data"]["stdout"] == "held\n"
        assert answer["data"]["boundary"].startswith("bubblewrap"), answer["data"]["boundary"]
    finally:
        http.close()


def test_the_wish_for_a_tunnel_outlives_a_killed_service_and_an_upgrade(manager: Manager, tmp_path: Path) -> None:
    home, program = tmp_path / "home", install(tmp_path / "programs", "cloudflared")
    tunnel = {"provider": "cloudflare", "cloudflare": {"program": str(program)}}
    write_config(home, tmp_path / "root", token=TOKEN, tunnel=tunnel)
    told(manager, home, "service", "install")
    wait_for(lambda: is_open(home, 1), seconds=60)
    os.kill(manager.main_pid(), signal.SIGKILL)
    wait_for(lambda: is_open(home, 2), seconds=60)
    told(manager, home, "service", "install")
    wait_for(lambda: is_open(home, 3), seconds=60)
    assert told(manager, home, "service", "uninstall")["removed"]
    record = read(home)
    assert record is not None and record.state == "stopped"
    assert json.loads((home / "config.json").read_text())["tunnel"] == tunnel


def is_open(home: Path, number: int) -> bool:
    record = read(home)
    return record is not None and record.public_url == f"https://stand-in-{number}.trycloudflare.com"


def test_stop_by_the_manager_is_clean(manager: Manager, home: Path) -> None:
    told(manager, home, "service", "install")
    manager.ask("stop", "computer-linker.service")
    shown = manager.ask("show", "computer-linker.service", "--property=Result,ExecMainStatus,ActiveState")
    assert "Result=success" in shown and "ExecMainStatus=0" in shown and "ActiveState=inactive" in shown
    assert not (home / "service.sock").exists()


def test_a_service_in_a_terminal_is_not_pushed_aside(manager: Manager, home: Path) -> None:
    environment = {**manager.environment, "COMPUTER_LINKER_HOME": str(home)}
    with subprocess.Popen([*PROGRAM, "serve", "--port", "0"], env=environment, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            assert b"http://" in process.stderr.readline()
            done = cli(manager, home, "service", "install")
            assert done.returncode == 1 and "already runs" in done.stderr and "computer-linker stop" in done.stderr
            assert not manager.unit.exists()
        finally:
            process.terminate()
            process.wait(30)


def test_a_config_that_cannot_be_used_installs_nothing(manager: Manager, home: Path) -> None:
    (home / "config.json").write_text('{"schemaVersion": 1, "nonsense": true}')
    done = cli(manager, home, "service", "install")
    assert done.returncode == 1 and "nonsense" in done.stderr
    assert not manager.unit.exists()


def test_a_service_that_cannot_start_is_tried_a_few_times_and_then_left(manager: Manager, home: Path) -> None:
    told(manager, home, "service", "install")
    manager.ask("stop", "computer-linker.service")
    (home / "config.json").write_text("{")
    manager.ask("start", "computer-linker.service")
    wait_for(lambda: told_state(manager) == "failed", seconds=120, step_s=0.2)
    assert 1 <= int(manager.ask("show", "computer-linker.service", "--property=NRestarts", "--value")) <= 5
    assert "error: config.json" in cli(manager, home, "service", "logs").stdout


def told_state(manager: Manager) -> str:
    return manager.ask("show", "computer-linker.service", "--property=ActiveState", "--value").strip()
