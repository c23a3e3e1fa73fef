"""Scopes on the command line: looking at one, one more command, and what is said before a wide folder is exposed."""

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from computer_linker.cli.app import main
from computer_linker.model.network import PROXY_PORT
from support.service import PROGRAM, environment

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("COMPUTER_LINKER_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    (tmp_path / "person" / "app").mkdir(parents=True)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    assert call("setup", str(tmp_path / "person" / "app"))[0] == 0
    return call


def stored(tmp_path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((tmp_path / "state" / "config.json").read_text())["scopes"][0]
    return value


def test_a_scope_is_shown_with_its_folders_rights_and_policy(run: Run, tmp_path: Path) -> None:
    run("scope", "edit", "app", "--policy", "confirm=all")
    code, out, _ = run("scope", "show", "app", "--json")
    shown = json.loads(out)
    assert code == 0 and shown["scope"]["roots"] == [str(tmp_path / "person" / "app")]
    assert shown["chosen"] == ["confirm"] and shown["scope"]["policy"]["sandbox"] == "auto"
    text = run("scope", "show", "app")[1]
    assert "confirm" in text and "fs:write" in text and "default" in text
    assert run("scope", "show", "other")[0] == 1


def test_one_more_command_is_allowed_and_the_other_rules_stay(run: Run, tmp_path: Path) -> None:
    assert run("scope", "allow", "app", "cargo test *")[0] == 0
    scope = stored(tmp_path)
    assert scope["policy"]["allowedCommands"] == ["cargo test *"] and scope["policy"]["network"] is False
    assert "command:run" in scope["capabilities"] and "package:run" not in scope["capabilities"]
    run("scope", "allow", "app", "make *")
    assert stored(tmp_path)["policy"]["allowedCommands"] == ["cargo test *", "make *"]
    before = (tmp_path / "state" / "config.json").read_bytes()
    assert json.loads(run("scope", "allow", "app", "make *", "--json")[1])["changed"] is False
    assert (tmp_path / "state" / "config.json").read_bytes() == before


def test_a_command_is_denied_and_allowed_again(run: Run, tmp_path: Path) -> None:
    run("scope", "allow", "app", "make *")
    run("scope", "deny", "app", "make *")
    policy = stored(tmp_path)["policy"]
    assert policy["allowedCommands"] == [] and policy["deniedCommands"][-1] == "make *"
    run("scope", "allow", "app", "make *")
    policy = stored(tmp_path)["policy"]
    assert policy["allowedCommands"] == ["make *"] and "make *" not in policy["deniedCommands"]


def test_a_scope_that_allows_every_command_gets_no_list(run: Run, tmp_path: Path) -> None:
    run("scope", "edit", "app", "--allow", "command:run")
    answer = json.loads(run("scope", "allow", "app", "make *", "--json")[1])
    assert (answer["allowed"], answer["changed"]) == (None, False)
    assert "policy" not in stored(tmp_path)


@pytest.mark.parametrize("words", [("app", ""), ("other", "make *")])
def test_a_rule_that_cannot_hold_is_refused_and_nothing_changes(
    run: Run, tmp_path: Path, words: tuple[str, str]
) -> None:
    before = (tmp_path / "state" / "config.json").read_bytes()
    for verb in ("allow", "deny"):
        assert run("scope", verb, *words)[0] != 0
    assert (tmp_path / "state" / "config.json").read_bytes() == before


@pytest.mark.parametrize("words", [("--allow", "fs:wirte"), ("--policy", "confirm=always")])
def test_a_mistyped_value_is_no_fault_of_the_file(run: Run, tmp_path: Path, words: tuple[str, str]) -> None:
    before = (tmp_path / "state" / "config.json").read_bytes()
    code, _, told = run("scope", "edit", "app", *words)
    assert code != 0 and "hint: nothing was changed" in told
    assert (tmp_path / "state" / "config.json").read_bytes() == before


@pytest.mark.parametrize(
    ("policy", "said", "hint"),
    [
        ("network=maybe", "network is true or false or list of text", "computer-linker scope allow-host app HOST"),
        ("allowedCommands=ls", "allowedCommands is list of", "--policy 'allowedCommands=[\"ls\"]'"),
        ("maxRuntimeSeconds=long", "maxRuntimeSeconds is whole number", "--policy maxRuntimeSeconds=60"),
        ("allowShell=yes", "allowShell is true or false", "--policy allowShell=true"),
    ],
)
def test_a_wrong_value_says_what_the_field_takes_and_how_it_is_written(
    run: Run, tmp_path: Path, policy: str, said: str, hint: str
) -> None:
    before = (tmp_path / "state" / "config.json").read_bytes()
    code, _, error = run("scope", "edit", "app", "--policy", policy)
    assert code == 2 and said in error and hint in error, error
    assert (tmp_path / "state" / "config.json").read_bytes() == before
    if "'" in hint:
        assert run("scope", "edit", "app", "--policy", hint.split("'")[1])[0] == 0


def test_the_help_names_every_policy_field_and_its_values(run: Run) -> None:
    text = " ".join(run("scope", "edit", "--help")[1].split())
    assert "sandbox=required or auto or off" in text and "confirm=never or act or all" in text
    assert "maxRuntimeSeconds=whole number" in text


def test_a_wide_folder_is_warned_of_before_it_is_exposed(run: Run, tmp_path: Path) -> None:
    err = run("scope", "add", str(tmp_path / "person"), "--id", "home")[2]
    assert err.index("your whole home folder") < err.index("Added scope")
    err = run("scope", "add", str(tmp_path), "--id", "around")[2]
    assert "contains the state folder" in err and "around your home folder" in err
    assert "exposed already, by scope app" in run("scope", "add", str(tmp_path / "person" / "app"), "--id", "two")[2]
    assert "warning" not in run("setup", str(tmp_path / "person" / "app"))[2]
    codes = [one["code"] for one in json.loads(run("doctor", "--json")[1])["security"]]
    assert {"root_is_home", "root_contains_state"} <= set(codes)


def test_a_no_at_the_terminal_exposes_nothing(run: Run, tmp_path: Path) -> None:
    before = (tmp_path / "state" / "config.json").read_bytes()
    person, terminal = pty.openpty()
    try:
        os.write(person, b"n\n")
        done = subprocess.run(
            [*PROGRAM, "scope", "add", str(tmp_path / "person")], env=environment(tmp_path / "state"),
            stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(terminal)
        os.close(person)
    assert done.returncode == 1
    assert (tmp_path / "state" / "config.json").read_bytes() == before


def test_hosts_are_added_and_taken_one_by_one(run: Run, tmp_path: Path) -> None:
    run("scope", "edit", "app", "--policy", "network=false")
    assert json.loads(run("scope", "allow-host", "app", "a.example.org", "--json")[1])["network"] == ["a.example.org"]
    run("scope", "allow-host", "app", "*.example.net:443")
    run("scope", "allow-host", "app", "npm")
    assert json.loads(run("scope", "allow-host", "app", "npm", "--json")[1])["changed"] is False
    assert run("scope", "allow-host", "app", "http://x.org/")[0] != 0
    assert run("scope", "allow-host", "app", f"localhost:{PROXY_PORT}")[0] != 0
    assert run("scope", "deny-host", "app", "*.example.net:443")[0] == 0
    assert json.loads(run("scope", "deny-host", "app", "npm", "--json")[1])["network"] == ["a.example.org"]
    assert json.loads(run("scope", "deny-host", "app", "a.example.org", "--json")[1])["network"] is False
    run("scope", "edit", "app", "--policy", "network=true")
    assert run("scope", "deny-host", "app", "a.example.org")[0] != 0
    assert stored(tmp_path)["policy"]["network"] is True
