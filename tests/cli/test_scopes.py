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
    """Point 001-089."""
    run("scope", "edit", "app", "--policy", "confirm=all")
    code, out, _ = run("scope", "show", "app", "--json")
    shown = json.loads(out)
    assert code == 0 and shown["scope"]["roots"] == [str(tmp_path / "person" / "app")]
    assert shown["chosen"] == ["confirm"] and shown["scope"]["policy"]["sandbox"] == "auto"
    text = run("scope", "show", "app")[1]
    assert "confirm" in text and "fs:write" in text and "default" in text
    assert run("scope", "show", "other")[0] == 1


def test_one_more_command_is_allowed_and_the_other_rules_stay(run: Run, tmp_path: Path) -> None:
    """Point 001-089."""
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
    run("scope", "edit", "app", "--policy", "sandbox=required")
    run("scope", "edit", "app", "--allow", "command:run", "--policy", "allowedCommands=")
    answer = json.loads(run("scope", "allow", "app", "make *", "--json")[1])
    assert (answer["allowed"], answer["changed"]) == (None, False)
    assert stored(tmp_path)["policy"] == {"sandbox": "required"}


def test_a_right_to_commands_under_a_policy_without_a_list_allows_the_least(run: Run, tmp_path: Path) -> None:
    """Defect: `confirm=act` and then `--allow command:run` let every command run."""
    run("scope", "edit", "app", "--policy", "confirm=act")
    said = run("scope", "edit", "app", "--allow", "command:run")[2]
    assert 'computer-linker scope allow app "npm test *"' in said
    assert stored(tmp_path)["policy"] == {"confirm": "act", "allowedCommands": []}
    refused = run("op", "command.run", "--scope", "app", "--input", "command=touch made")
    assert refused[0] != 0 and not (tmp_path / "person" / "app" / "made").exists()


def test_a_scope_moved_to_a_folder_that_asks_asks_too(run: Run, tmp_path: Path) -> None:
    """Defect: it only warned, and clients wrote there unasked."""
    (tmp_path / "person" / "app" / "lib").mkdir()
    (tmp_path / "person" / "free").mkdir()
    run("scope", "edit", "app", "--policy", "confirm=all")
    run("scope", "add", str(tmp_path / "person" / "free"))
    said = run("scope", "edit", "free", "--root", str(tmp_path / "person" / "app" / "lib"))[2]
    assert "You are asked before every change that clients make there, as in app." in said
    refused = run("op", "file.write", "a.txt", "--scope", "free", "--input", "content=x")
    assert refused[0] != 0 and not (tmp_path / "person" / "app" / "lib" / "a.txt").exists()
    run("scope", "edit", "free", "--policy", "confirm=never")
    said = run("scope", "edit", "free", "--root", str(tmp_path / "person" / "app"))[2]
    assert "without asking you" in said and "You are asked" not in said, "the owner said so"


@pytest.mark.parametrize("place", ["/etc", "/usr/lib", "/var/log"])
def test_a_folder_of_the_system_is_warned_of_also_behind_a_link(run: Run, tmp_path: Path, place: str) -> None:
    (tmp_path / "person" / "link").symlink_to(place)
    err = run("scope", "add", str(tmp_path / "person" / "link"), "--read-only")[2]
    assert f"leads to {place}, which is a folder of the system" in err
    assert err.index("of the system") < err.index("Added scope")
    assert "is a folder of the system" in run("status")[1]
    (tmp_path / "person" / "plain").symlink_to(tmp_path / "person" / "app")
    assert "folder of the system" not in run("scope", "add", str(tmp_path / "person" / "plain"))[2]


@pytest.mark.parametrize("change", [("deny", "app", "make *"), ("edit", "app", "--policy", "confirm=all")])
def test_the_first_policy_of_a_scope_lets_no_more_commands_run(
    run: Run, tmp_path: Path, change: tuple[str, ...]
) -> None:
    """Defect: without a policy only programs that read run, and with `deniedCommands` alone every other command ran."""
    run("scope", "edit", "app", "--allow", "command:run")
    run("scope", *change)
    assert stored(tmp_path)["policy"]["allowedCommands"] == []
    assert json.loads(run("scope", "allow", "app", "cargo *", "--json")[1])["allowed"] == ["cargo *"]


def test_a_denied_command_comes_after_the_default_ones(run: Run, tmp_path: Path) -> None:
    run("scope", "deny", "app", "cargo publish *")
    run("setup", str(tmp_path / "person" / "app"), "--shell")
    denied = stored(tmp_path)["policy"]["deniedCommands"]
    assert denied[-1] == "cargo publish *" and {"rm -rf *", "git push *"} < set(denied)


def test_a_scope_that_runs_nothing_is_not_said_to_allow_every_command(run: Run, tmp_path: Path) -> None:
    out = run("scope", "deny", "app", "cargo publish *")[1]
    assert "allowed: none, scope app does not run commands" in out and "every command" not in out
    run(
        "scope",
        "edit",
        "app",
        "--allow",
        "command:run",
        "--policy",
        "deniedCommands=",
        "--policy",
        "allowedCommands=[]",
    )
    assert "allowed: programs that only read" in run("scope", "deny", "app", "make *")[1]


def test_undoing_a_right_to_run_commands_is_no_more_than_now(run: Run, tmp_path: Path) -> None:
    before = stored(tmp_path)
    run("setup", str(tmp_path / "person" / "app"), "--shell")
    assert run("undo", "last")[0] == 0 and stored(tmp_path) == before
    run("setup", str(tmp_path / "person" / "app"), "--shell")
    run("scope", "edit", "app", "--deny", "command:run", "--deny", "package:run")
    assert run("undo", "last")[0] == 1, "it gives the right again"


@pytest.mark.parametrize("place", ["app", "app/lib", "."])
def test_a_folder_that_is_exposed_again_asks_as_before(run: Run, tmp_path: Path, place: str) -> None:
    """Defect: a second scope on the folder, inside it or around it let clients write unasked."""
    (tmp_path / "person" / "app" / "lib").mkdir()
    run("scope", "edit", "app", "--policy", "confirm=all", "--policy", "outcome=view")
    said = run("scope", "add", str(tmp_path / "person" / place), "--id", "two")[2]
    assert "You are asked before every change that clients make there, as in app." in said
    policy = json.loads(run("scope", "show", "two", "--json")[1])["scope"]["policy"]
    assert (policy["confirm"], policy["outcome"]) == ("all", "view")
    said = run("scope", "edit", "two", "--policy", "confirm=never")[2]
    assert "through scope two without asking you, though scope app asks" in said
    found = json.loads(run("doctor", "--json")[1])["security"]
    assert [one["scope"] for one in found if one["code"] == "unasked"] == ["two"]
    assert "through scope two without asking you" in run("status")[1]


def test_an_owner_can_say_that_a_folder_inside_is_not_asked_for(run: Run, tmp_path: Path) -> None:
    (tmp_path / "person" / "app" / "lib").mkdir()
    run("scope", "edit", "app", "--policy", "confirm=all")
    said = run("scope", "add", str(tmp_path / "person" / "app" / "lib"), "--policy", "confirm=never")[2]
    assert "without asking you" in said and "You are asked" not in said
    assert "asks" not in run("setup", str(tmp_path / "person" / "other"))[2]


def test_setup_of_a_folder_inside_asks_as_before(run: Run, tmp_path: Path) -> None:
    (tmp_path / "person" / "app" / "lib").mkdir()
    run("scope", "edit", "app", "--policy", "confirm=all")
    assert "as in app." in run("setup", str(tmp_path / "person" / "app" / "lib"), "--shell")[1]
    policy = json.loads(run("scope", "show", "lib", "--json")[1])["scope"]["policy"]
    assert policy["confirm"] == "all" and policy["allowedCommands"]


@pytest.mark.parametrize("place", [".ssh", ".gnupg/private-keys-v1.d", ".aws", ".mozilla/firefox/p", ".config", "bin"])
def test_a_folder_of_keys_or_programs_is_warned_of_before_it_is_exposed(run: Run, tmp_path: Path, place: str) -> None:
    (tmp_path / "person" / place).mkdir(parents=True)
    err = run("scope", "add", str(tmp_path / "person" / place), "--id", "it")[2]
    what = "other programs run or trust" if place == "bin" else "holds keys or logins"
    assert err.index(what) < err.index("Added scope")
    codes = [one["code"] for one in json.loads(run("doctor", "--json")[1])["security"]]
    assert "root_is_private" in codes and what in run("status")[1]


@pytest.mark.parametrize("words", [(), ("--deny", "git:write"), ("--policy", "network=false", "--policy", "network=")])
def test_an_edit_that_changes_nothing_says_so(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    before = (tmp_path / "state" / "config.json").read_bytes()
    assert "Nothing to change in scope app." in run("scope", "edit", "app", *words)[2]
    assert (tmp_path / "state" / "config.json").read_bytes() == before


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
        ("network=maybe", "network is true or false or list of text", "computer-linker scope allow-host SCOPE HOST"),
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
            stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, timeout=240, check=False,
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
