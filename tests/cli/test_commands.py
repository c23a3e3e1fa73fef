"""The commands as a person types them."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from computer_linker.cli.app import build, main
from computer_linker.config.load import load


@dataclass
class Shell:
    """Runs a command line in this process, in a state folder of its own."""

    home: Path
    folder: Path
    read: Callable[[], tuple[str, str]]

    def __call__(self, *words: str | Path) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        out, err = self.read()
        return code, out, err

    def json(self, *words: str | Path, code: int = 0) -> Any:
        got, out, err = self(*words, "--json")
        assert got == code, err
        return json.loads(out)

    def refused(self, *words: str | Path, code: int = 1) -> str:
        """One line, maybe a hint, nothing on stdout, and the config as it was."""
        before = (self.home / "config.json").read_bytes() if (self.home / "config.json").exists() else None
        got, out, err = self(*words)
        assert (got, out) == (code, ""), (got, out, err)
        lines = err.splitlines()
        assert lines[0].startswith("error: ") and len(lines) <= 2
        assert all(line.startswith("hint: ") for line in lines[1:])
        after = (self.home / "config.json").read_bytes() if (self.home / "config.json").exists() else None
        assert after == before
        return err


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    home, folder = tmp_path / "home", tmp_path / "My Project"
    folder.mkdir()
    monkeypatch.setenv("COMPUTER_LINKER_HOME", str(home))

    def read() -> tuple[str, str]:
        captured = capsys.readouterr()
        return captured.out, captured.err

    return Shell(home, folder, read)


def test_the_first_help_is_short_and_the_whole_one_is_not(shell: Shell) -> None:
    code, out, _ = shell("--help")
    assert code == 0
    commands = [line.split()[0] for line in out.split("Commands:")[1].splitlines() if line.strip()]
    assert commands == ["start", "setup", "status", "doctor", "scope", "client"]
    assert shell()[1] == out
    assert "..." not in out.split("Commands:")[1]
    every = shell("--help-all")[1]
    for name in ("serve", "stdio", "stop", "op", "config", "token", "self-test", "completion"):
        assert f"\n  {name} " in every


@pytest.mark.parametrize("words", [["nonsense"], ["scope", "nonsense"], ["status", "--nonsense"], ["op", "file.raed"]])
def test_a_command_line_that_cannot_be_understood_ends_with_2(shell: Shell, words: list[str]) -> None:
    shell("setup", shell.folder)
    shell.refused(*words, code=2)


def test_each_command_is_there_when_only_its_first_word_is_loaded() -> None:
    whole: Any = typer.main.get_command(build(everything=True))
    for name, command in whole.commands.items():
        alone: Any = typer.main.get_command(build(everything=False, first=name))
        assert sorted(getattr(alone.commands[name], "commands", {})) == sorted(getattr(command, "commands", {})), name


@pytest.mark.parametrize("group", ["scope", "client", "config", "token", "process", "screen", "sandbox", "peer"])
def test_a_group_named_alone_shows_its_help(shell: Shell, group: str) -> None:
    code, out, err = shell(group)
    assert (code, err) == (0, "")
    assert out == shell(group, "--help")[1]


def test_help_names_values_for_people_and_not_by_python_types(shell: Shell) -> None:
    for words in (["scope", "add"], ["scope", "edit"], ["start"], ["peer", "pair"]):
        out = shell(*words, "--help")[1]
        assert "list[" not in out and "range>" not in out and "scope_id" not in out, out


def test_setup_with_a_folder_exposes_only_that(shell: Shell) -> None:
    answer = shell.json("setup", shell.folder)
    (scope,) = answer["scopes"]
    assert (scope["id"], scope["roots"]) == ("my-project", [str(shell.folder)])
    reads = {"fs:read", "search:read", "git:read", "history:read", "artifact:read"}
    assert set(scope["capabilities"]) == reads | {"fs:write", "artifact:write"}
    narrowed = shell.json("setup", shell.folder, "--read-only")["scopes"][0]
    assert set(narrowed["capabilities"]) == reads
    assert (shell.home.stat().st_mode & 0o777, (shell.home / "config.json").stat().st_mode & 0o777) == (0o700, 0o600)
    assert load(shell.home).owner_token


def test_setup_twice_changes_nothing(shell: Shell) -> None:
    shell("setup", shell.folder)
    before = (shell.home / "config.json").read_bytes()
    assert shell.json("setup", shell.folder)["done"] == []
    assert (shell.home / "config.json").read_bytes() == before


def test_setup_without_a_folder_makes_a_demo_that_a_named_folder_replaces(shell: Shell) -> None:
    (demo,) = shell.json("setup")["scopes"]
    assert demo["id"] == "demo"
    assert (Path(demo["roots"][0]) / "notes.txt").exists()
    told = shell("setup", shell.folder)[1]
    assert "Removed scope demo" in told and "Added scope my-project" in told
    assert [scope["id"] for scope in shell.json("setup")["scopes"]] == ["my-project"]
    assert (Path(demo["roots"][0]) / "notes.txt").exists()


def test_setup_removes_the_first_run_scope(shell: Shell, tmp_path: Path) -> None:
    shell.home.mkdir(mode=0o700)
    current = {"id": "current", "roots": [str(tmp_path)], "capabilities": ["fs:read"]}
    (shell.home / "config.json").write_text(json.dumps({"machineId": "m", "machineName": "n", "scopes": [current]}))
    assert [scope["id"] for scope in shell.json("setup", shell.folder)["scopes"]] == ["my-project"]
    assert load(shell.home).owner_token


def test_read_only_narrows_and_programs_come_with_a_policy(shell: Shell) -> None:
    (scope,) = shell.json("setup", shell.folder, "--read-only", "--shell")["scopes"]
    assert "fs:write" not in scope["capabilities"]
    assert "command:run" in scope["capabilities"]
    assert scope["policy"]["allowedCommands"]
    assert scope["policy"]["maxRuntimeSeconds"] == 1800
    (again,) = shell.json("setup", shell.folder, "--write")["scopes"]
    assert {"fs:write", "command:run"} <= set(again["capabilities"])


def test_a_deliberate_absence_of_a_token_stays(shell: Shell) -> None:
    shell("setup", shell.folder)
    shell("config", "set", "ownerToken", "null")
    shell("setup", shell.folder)
    assert load(shell.home).owner_token is None
    assert "owner token none" in shell("status")[1]


@pytest.mark.parametrize("folder", ["missing", "file.txt", "/", "home"])
def test_a_folder_that_cannot_be_exposed_is_refused(shell: Shell, tmp_path: Path, folder: str) -> None:
    shell("setup")
    (tmp_path / "file.txt").write_text("")
    shell.refused("setup", str(tmp_path / folder))
    shell.refused("scope", "add", str(tmp_path / folder))


def test_a_config_others_can_write_stops_every_command(shell: Shell) -> None:
    shell("setup", shell.folder)
    (shell.home / "config.json").chmod(0o666)
    for words in (
        ["start"], ["serve"], ["status"], ["scope", "list"], ["setup"],
        ["config", "show"], ["config", "validate"], ["token", "rotate"], ["client", "setup"], ["op", "file.list", "."],
    ):  # fmt: skip
        assert "other users" in shell.refused(*words), words


def test_a_broken_config_stops_every_command_and_names_the_field(shell: Shell) -> None:
    shell("setup", shell.folder)
    value = json.loads((shell.home / "config.json").read_text())
    value["scopes"][0]["capabilties"] = []
    (shell.home / "config.json").write_text(json.dumps(value))
    for words in (["start"], ["status"], ["scope", "remove", "my-project"], ["token", "rotate"]):
        assert "scopes.0.capabilties" in shell.refused(*words), words
    before = (shell.home / "config.json").read_bytes()
    looked = shell.json("doctor", code=1)
    assert "scopes.0.capabilties" in looked["config"][0]["message"] and looked["config"][0]["fixable"]
    assert looked["tools"]["python"]["available"], "the rest is looked at all the same"
    assert (shell.home / "config.json").read_bytes() == before


def test_status_is_short_and_details_say_more(shell: Shell) -> None:
    shell("setup", shell.folder)
    code, short, _ = shell("status")
    assert code == 0
    assert len(short.splitlines()) <= 8
    assert str(shell.folder) not in short
    assert str(shell.folder) in shell("status", "--details")[1]
    answer = shell.json("status")
    assert answer["status"]["ready"] is True
    assert answer["service"] == {"running": False, "localUrl": None, "publicUrl": None}


def test_status_without_scopes_says_why_not_and_what_next(shell: Shell) -> None:
    shell("setup", shell.folder)
    shell("scope", "remove", "my-project")
    code, out, _ = shell("status")
    assert code == 1
    assert "not ready" in out
    assert "next: Run: computer-linker scope add FOLDER" in out


def test_status_says_what_the_next_step_is_about(shell: Shell) -> None:
    shell("scope", "add", shell.folder, "--id", "one")
    shell("scope", "add", shell.folder, "--id", "two")
    code, out, _ = shell("status")
    assert code == 0
    assert "warning  Scopes one and two are the same folder" in out
    assert "next: Run: computer-linker doctor --fix" in out


def test_the_profile_is_told_in_plain_words(shell: Shell) -> None:
    shell("setup", shell.folder)
    told = dict(line.split(maxsplit=1) for line in shell("profile")[1].splitlines())
    assert (told["publicMcpUrl"], told["running"]) == ("none", "no")
    assert told["environment"] == f"COMPUTER_LINKER_HOME={shell.home}"


def test_doctor_reports_programs_findings_and_release_readiness(shell: Shell) -> None:
    shell("setup", shell.folder)
    answer = shell.json("doctor")
    assert answer["tools"]["python"]["available"] is True
    assert answer["releaseReadiness"]["status"] in ("ready", "needs_attention")
    shell("config", "set", "host", "0.0.0.0")
    shell("config", "set", "ownerToken", "null")
    blocked = shell.json("doctor", code=1)
    assert blocked["releaseReadiness"]["status"] == "blocked"
    assert [found["code"] for found in blocked["security"]] == ["no_owner_token"]


def test_screen_status_captures_nothing_and_says_what_is_missing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points 000-153, 000-213 and 001-091."""
    shell("setup", shell.folder, "--screen")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    answer = shell.json("screen", "status")
    assert answer["scopes"] == ["screen"]
    assert answer["screenshot"]["available"] is False
    assert answer["screenshot"]["remedy"]
    assert "screenshots" in shell("screen", "status")[1]


def test_doctor_fix_repairs_what_has_one_answer(shell: Shell) -> None:
    shell("setup", shell.folder)
    shell("scope", "add", shell.folder, "--id", "twin")
    shell("scope", "edit", "my-project", "--allow", "package:run")
    answer = shell.json("doctor", "--fix")
    assert answer["repairs"][0] == "Gave scope my-project the default list of allowed commands."
    assert answer["repairs"][1].startswith("config.json as it was can be put back: computer-linker undo ")
    assert {scope.id for scope in load(shell.home).scopes} == {"my-project", "twin"}


def test_the_repairs_and_the_undo_are_the_last_lines_of_doctor_fix(shell: Shell) -> None:
    shell("setup", shell.folder)
    shell("scope", "edit", "my-project", "--allow", "package:run")
    lines = shell("doctor", "--fix")[1].splitlines()
    assert lines[-2] == "Gave scope my-project the default list of allowed commands."
    assert lines[-1].startswith("config.json as it was can be put back: computer-linker undo ")
    assert not any(line.startswith("release") for line in lines)


def stored(home: Path) -> dict[str, Any]:
    """The one scope as config.json has it."""
    [scope] = json.loads((home / "config.json").read_bytes())["scopes"]
    found: dict[str, Any] = scope
    return found


def test_scopes_are_added_edited_and_removed(shell: Shell, tmp_path: Path) -> None:
    added = shell.json("scope", "add", shell.folder, "--id", "app", "--name", "Main", "--read-only")
    assert (added["id"], added["name"]) == ("app", "Main")
    edited = shell.json(
        "scope", "edit", "app", "--allow", "fs:write", "--deny", "history:read", "--policy", "network=true"
    )
    assert "fs:write" in edited["capabilities"] and "history:read" not in edited["capabilities"]
    assert edited["policy"]["network"] is True and stored(shell.home)["policy"] == {"network": True}
    assert shell.json("scope", "edit", "app", "--policy", "network=")["policy"]["network"] is False
    assert stored(shell.home)["policy"] == {}
    assert [scope["id"] for scope in shell.json("scope", "list")["scopes"]] == ["app"]
    shell("scope", "remove", "app")
    assert shell.json("scope", "list")["scopes"] == []
    assert shell.folder.is_dir()


@pytest.mark.parametrize(
    "words",
    [
        ["edit", "app", "--allow", "fs:everything"],
        ["edit", "app", "--policy", "netwrok=true"],
        ["edit", "app", "--policy", "sandbox=maybe"],
        ["edit", "nobody", "--allow", "fs:write"],
        ["remove", "nobody"],
    ],
)
def test_a_scope_edit_that_does_not_fit_changes_nothing(shell: Shell, words: list[str]) -> None:
    shell("scope", "add", shell.folder, "--id", "app")
    shell.refused("scope", *words)


def test_a_scope_for_the_screen_looks_only_until_more_is_allowed(shell: Shell) -> None:
    looks = shell.json("scope", "add", "--computer")
    assert (looks["type"], looks["capabilities"], looks["policy"]["confirm"]) == (
        "computer",
        ["screen:capture"],
        "act",
    )
    acts = shell.json(
        "scope", "add", "--computer", "--id", "desk", "--allow", "desktop:observe", "--allow", "desktop:control"
    )
    assert acts["capabilities"] == ["screen:capture", "desktop:observe", "desktop:control"]
    shell.refused("scope", "add", code=2)
    shell.refused("scope", "add", shell.folder, "--computer", code=2)


def test_a_second_scope_of_the_same_id_is_refused(shell: Shell) -> None:
    shell("scope", "add", shell.folder, "--id", "app")
    shell.refused("scope", "add", shell.folder, "--id", "app")


def test_config_shows_validates_and_sets(shell: Shell) -> None:
    shell("setup", shell.folder)
    token = load(shell.home).owner_token or ""
    assert token not in shell("config", "show")[1]
    assert token in shell("config", "show", "--show-token")[1]
    assert shell("config", "path")[1].strip() == str(shell.home / "config.json")
    assert shell.json("config", "validate")["valid"] is True
    shell("config", "set", "port", "4000")
    assert load(shell.home).port == 4000
    for words in (["port", "high"], ["publicBaseUrl", "nonsense"], ["ownerToken", "short"]):
        shell.refused("config", "set", *words)
    shell.refused("config", "set", "machineId", "other", code=2)


def test_a_rotated_token_replaces_the_old_one_and_is_shown_only_when_asked(shell: Shell) -> None:
    shell("setup", shell.folder)
    old = shell("token", "show")[1].strip()
    code, out, _ = shell("token", "rotate")
    new = load(shell.home).owner_token
    assert (code, out) == (0, "")
    assert new != old
    assert shell("token", "show")[1].strip() == new
    assert shell.json("token", "rotate", "--show-token")["ownerToken"] == load(shell.home).owner_token


def test_a_token_kept_as_a_digest_cannot_be_shown_again(shell: Shell) -> None:
    from computer_linker.auth.owner_token import matches

    shell("setup", shell.folder)
    token = shell("token", "rotate", "--digest")[1].strip()
    kept = load(shell.home).owner_token or ""
    assert token not in (shell.home / "config.json").read_text()
    assert matches(kept, token)
    shell.refused("token", "show")


def test_client_setup_hides_the_token_until_it_is_asked_for(shell: Shell) -> None:
    shell("setup", shell.folder)
    token = load(shell.home).owner_token or ""
    hidden, shown = shell("client", "setup")[1], shell("client", "setup", "--show-token")[1]
    assert token not in hidden
    assert f"Bearer {token}" in shown
    for wanted in ("claude mcp add computer-linker", "codex mcp add computer-linker", "inspector", "cursor", "vscode"):
        assert wanted in hidden
    assert f"COMPUTER_LINKER_HOME={shell.home}" in hidden


def test_op_lists_and_explains_operations(shell: Shell) -> None:
    code, out, _ = shell("op")
    assert code == 0 and "batch.run" in out
    assert "--input KEY=VALUE" in shell("op", "batch.run", "--help")[1]


def test_op_lists_each_operation_with_its_first_sentence_alone(shell: Shell) -> None:
    for each in shell.json("op"):
        summary = each["summary"]
        assert summary and not summary.endswith(".") and ". " not in summary and "  " not in summary, summary


def test_a_json_input_that_is_none_is_named_by_its_flag(shell: Shell) -> None:
    shell("setup", shell.folder)
    assert "--input begins like a JSON object" in shell.refused("op", "file.write", "x", "--input", "{oops", code=2)


def test_op_asks_which_scope_when_there_are_several(shell: Shell, tmp_path: Path) -> None:
    shell("scope", "add", shell.folder, "--id", "one")
    shell("scope", "add", str(tmp_path / "My Project"), "--id", "two", "--read-only")
    assert "one or two" in shell.refused("op", "batch.run", "--input", "operations=[]", code=2)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish", "powershell"])
def test_completion_prints_a_script(shell: Shell, name: str) -> None:
    code, out, _ = shell("completion", name)
    assert code == 0
    assert "computer-linker" in out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("computer-linker s", ["start", "setup", "status", "scope", "serve", "stop", "stdio", "self-test"]),
        ("computer-linker op file.rea", ["file.read", "file.read_many"]),
        ("computer-linker op file.read --scope ", ["my-project"]),
        ("computer-linker scope remove ", ["my-project"]),
    ],
)
def test_the_shell_completes_commands_operations_and_scopes(shell: Shell, words: str, offered: list[str]) -> None:
    shell("setup", shell.folder)
    typed = words.split(" ")
    env = {
        **os.environ, "COMPUTER_LINKER_HOME": str(shell.home), "_COMPUTER_LINKER_COMPLETE": "complete_bash",
        "COMP_WORDS": words, "COMP_CWORD": str(len(typed) - 1),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "computer_linker"], env=env, capture_output=True, text=True, timeout=240
    )
    assert set(offered) <= set(done.stdout.split()), done.stderr


def test_a_relative_home_is_taken_from_where_the_command_runs(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPUTER_LINKER_HOME", "home")
    shell("setup", shell.folder)
    assert (tmp_path / "home" / "config.json").exists()


def test_a_project_s_env_file_changes_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / ".env").write_text("COMPUTER_LINKER_HOME=./evil\nLOCALPORT_HOME=./evil\n")
    monkeypatch.chdir(shell.folder)
    shell("setup", shell.folder)
    assert sorted(os.listdir(shell.folder)) == [".env"]
    assert shell("config", "path")[1].strip() == str(shell.home / "config.json")


def test_make_start_passes_a_folder_with_a_space_as_one(tmp_path: Path) -> None:
    project = Path(__file__).parents[2]
    command = ["make", "--no-print-directory", "-n", "-o", ".venv/.base", "start", f"FOLDER={tmp_path}/my notes"]
    shown = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=30, check=True).stdout
    assert shlex.split(shown)[-2:] == ["start", f"{tmp_path}/my notes"]
