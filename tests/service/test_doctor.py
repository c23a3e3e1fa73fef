"""What is ready, what blocks, and what would help."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from computer_linker.config.load import CORRECT
from computer_linker.config.schema import Config
from computer_linker.dispatch.device_queues import DeviceQueues
from computer_linker.dispatch.pause import Pause
from computer_linker.errors import ConfigInvalid, Problem
from computer_linker.model.scope import Scope
from computer_linker.model.times import local, shown_s
from computer_linker.service.doctor import diagnosis, status_of
from computer_linker.service.programs import find_program, tool_readiness


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    (folder / "config.json").touch(mode=0o600)
    return folder


def config(root: Path | None, **changes: Any) -> Config:
    scope = {"id": "app", "roots": [str(root)], "capabilities": ["fs:read", *changes.pop("capabilities", [])]}
    value = {"machineId": "m", "machineName": "n", "ownerToken": "t" * 32, "scopes": [scope] if root else [], **changes}
    return Config.from_wire(value)


def readiness(known: Config, home: Path, *, serving_http: bool) -> dict[str, Any]:
    return status_of(known, home, serving_http=serving_http).to_wire()


def test_a_plain_config_is_ready(home: Path, tmp_path: Path) -> None:
    answer = readiness(config(tmp_path / "home"), home, serving_http=True)
    assert set(answer) == {"ready", "blockingReasons", "warnings", "ownerToken", "nextActions"}
    assert (answer["ready"], answer["blockingReasons"]) == (True, [])


def test_no_scope_is_not_ready_and_says_what_to_run(home: Path) -> None:
    answer = readiness(config(None), home, serving_http=True)
    assert answer["ready"] is False
    assert answer["nextActions"] == ["Run: computer-linker scope add FOLDER"]


@pytest.mark.parametrize("seconds", [None, 3600.0])
def test_a_pause_is_not_ready_and_says_until_when(home: Path, seconds: float | None) -> None:
    pausing = Pause(home).begin(seconds)
    end = "you run: computer-linker unpause" if pausing.until is None else local(shown_s(pausing.until))
    short, whole = (
        readiness(config(home.parent), home, serving_http=True),
        diagnosis(config(home.parent), home).to_wire(),
    )
    for answer, actions in ((short, short["nextActions"]), (whole["status"], whole["nextActions"])):
        assert answer["ready"] is False and f"Clients are paused until {end}." in answer["blockingReasons"]
        assert "Run: computer-linker unpause" in actions
    assert any(found["code"] == "clients_paused" for found in whole["config"])
    Pause(home).end()
    assert readiness(config(home.parent / "home"), home, serving_http=True)["ready"]


def test_a_pause_that_is_over_says_nothing_and_looking_changes_nothing(home: Path) -> None:
    (home / "paused.json").write_text('{"since": 1.0, "until": 2.0}')
    assert readiness(config(home.parent / "home"), home, serving_http=True)["ready"]
    assert (home / "paused.json").exists()


def test_a_halted_desktop_is_a_warning(home: Path) -> None:
    lanes = DeviceQueues(home / "desktop-halted")
    lanes.halt()
    answer = readiness(config(home.parent / "home"), home, serving_http=True)
    assert answer["ready"] and any("The desktop is halted" in warning for warning in answer["warnings"])
    assert "Run: computer-linker resume" in answer["nextActions"]
    lanes.resume()
    after = readiness(config(home.parent / "home"), home, serving_http=True)
    assert not any("The desktop is halted" in warning for warning in after["warnings"])


def test_each_problem_of_a_refused_config_is_named_once(home: Path, tmp_path: Path) -> None:
    """Defect: while a service kept the last valid config, each was an error and a warning."""
    why = ConfigInvalid.of([Problem((), "two scopes have the id 'app'", "check")], CORRECT)
    known = config(tmp_path).in_place_of((why.message,))
    found = [finding.message for finding in diagnosis(known, home, why).findings]
    assert sum("two scopes" in message for message in found) == 1
    assert sum("stays in force" in message for message in found) == 1
    assert sum("two scopes" in message for message in readiness(known, home, serving_http=True)["warnings"]) == 1


def test_loopback_without_a_token_is_said_where_http_is_served_and_only_there(home: Path, tmp_path: Path) -> None:
    open_config = config(tmp_path, ownerToken=None)
    assert any("need no token" in warning for warning in readiness(open_config, home, serving_http=True)["warnings"])
    assert not any(
        "need no token" in warning for warning in readiness(open_config, home, serving_http=False)["warnings"]
    )


def test_the_token_never_appears_in_a_report(home: Path, tmp_path: Path) -> None:
    known = config(tmp_path, ownerToken="VERY-SECRET-TOKEN-0123456789")
    assert "VERY-SECRET" not in repr(readiness(known, home, serving_http=True))
    assert "VERY-SECRET" not in repr(diagnosis(known, home).to_wire())


def standing(home: Path, **changes: Any) -> str:
    status: str = diagnosis(config(home.parent / "root", **changes), home).release_readiness.status
    return status


def test_release_readiness_is_blocked_by_errors_and_held_up_by_warnings(home: Path, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    assert standing(home, host="0.0.0.0", ownerToken=None) == "blocked"
    assert standing(home, capabilities=["command:run"]) == "needs_attention"
    checks = {c.name: c.passed for c in diagnosis(config(tmp_path / "root"), home).release_readiness.checks}
    tools = checks.pop("tools")
    assert all(checks.values())
    assert tools == all(tool.available for tool in tool_readiness().values() if tool.need == "recommended")


def test_each_program_says_where_it_is_or_how_to_get_it() -> None:
    for name, tool in tool_readiness().items():
        assert tool.need in ("required", "recommended", "optional")
        assert bool(tool.path) == tool.available == (tool.remedy is None), name
    assert tool_readiness()["python"].version


def test_a_program_is_asked_its_version_again_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pnpm"

    def install(version: str) -> None:
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    install("9.1.0")
    assert tool_readiness()["pnpm"].version == "9.1.0"
    before = program.stat().st_mtime_ns
    install("9.2.0")
    os.utime(program, ns=(before + 1, before + 1))
    assert tool_readiness()["pnpm"].version == "9.2.0"


def test_a_program_that_cannot_tell_its_version_is_still_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "yarn"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert tool_readiness()["yarn"].to_wire() | {"purpose": ""} == {
        "available": True, "path": str(program), "version": None, "need": "optional", "purpose": "", "remedy": None,
    }  # fmt: skip


def test_a_file_that_cannot_be_executed_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bun").write_text("")
    (tmp_path / "bun").chmod(stat.S_IRUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program("bun") is None


def test_an_allow_list_that_limits_nothing_is_named(tmp_path: Path) -> None:
    policy = {"sandbox": "off", "allowedCommands": ["npm *", "env *", "git *"]}
    scope = Scope.from_wire({"id": "app", "roots": [str(tmp_path)], "capabilities": ["command:run"], "policy": policy})
    config = Config(machine_id="m", machine_name="m", scopes=[scope])
    found = [finding for finding in diagnosis(config, tmp_path).findings if finding.code == "wide_commands"]
    assert len(found) == 1
    assert "env" in found[0].message
