"""First use: what is missing is made, what was named is exposed, and nothing else changes."""

import json
from pathlib import Path

import pytest

from computer_linker.config.load import load
from computer_linker.config.store import ensure, update
from computer_linker.errors import ConfigInvalid
from computer_linker.service.client_setup import client_lines, environment, stdio_lines
from computer_linker.service.settings import live_config
from computer_linker.service.setup import SetupChoices, checked_folder, set_up


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "app"
    made.mkdir()
    return made


def test_the_identity_is_made_once(home: Path, folder: Path) -> None:
    first = set_up(home, SetupChoices(folder)).config.machine_id
    assert set_up(home, SetupChoices(folder)).config.machine_id == first
    update(home, lambda value: value.update(machineName="renamed"))
    assert load(home).machine_id == first


def test_a_refused_folder_makes_nothing(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid):
        set_up(home, SetupChoices(tmp_path / "missing"))
    assert not home.exists()


def test_the_state_folder_and_links_to_it_cannot_be_exposed(home: Path, tmp_path: Path) -> None:
    ensure(home, None)
    (tmp_path / "link").symlink_to(home)
    for place in (home, tmp_path / "link"):
        with pytest.raises(ConfigInvalid, match="state folder"):
            checked_folder(place, home)


def test_two_folders_of_one_name_get_two_ids(home: Path, tmp_path: Path) -> None:
    for parent in ("one", "two"):
        (tmp_path / parent / "app").mkdir(parents=True)
        set_up(home, SetupChoices(tmp_path / parent / "app"))
    assert [scope.id for scope in load(home).scopes] == ["app", "app-2"]


@pytest.mark.parametrize("name", ["Größe", "  ", "..hidden", "a" * 100, "-rf"])
def test_any_folder_name_makes_a_fitting_id(home: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    set_up(home, SetupChoices(tmp_path / name))
    assert len(load(home).scopes) == 1


def test_codex_and_screen_come_only_when_asked_for(home: Path, folder: Path) -> None:
    granted = {name for scope in set_up(home, SetupChoices(folder)).config.scopes for name in scope.capabilities}
    assert not granted & {"command:run", "codex:run", "package:run", "process:manage", "screen:capture", "git:write"}
    more = set_up(home, SetupChoices(folder, codex=True, screen=True)).config
    assert "codex:run" in more.scopes[0].capabilities
    assert more.scopes[0].policy.allowed_commands
    assert (more.scopes[1].type, more.scopes[1].capabilities) == ("computer", ["screen:capture"])


def test_the_default_command_rules_pass_their_own_check(home: Path, folder: Path) -> None:
    set_up(home, SetupChoices(folder, shell=True))
    assert live_config(home).current().scopes[0].policy.allowed_commands


def test_command_rules_that_contradict_their_examples_stop_the_config(home: Path, folder: Path) -> None:
    set_up(home, SetupChoices(folder, shell=True))
    rule = {"pattern": "git status", "matches": ["git push"]}
    value = json.loads((home / "config.json").read_text())
    value["scopes"][0]["policy"]["allowedCommands"] = [rule]
    (home / "config.json").write_text(json.dumps(value))
    with pytest.raises(ConfigInvalid, match="scope app: allowedCommands"):
        live_config(home).current()


def test_the_usual_state_folder_needs_no_environment() -> None:
    assert environment(Path.home() / ".computer-linker") == {}
    assert environment(Path("/elsewhere")) == {"COMPUTER_LINKER_HOME": "/elsewhere"}


def test_a_state_folder_with_a_space_is_quoted_in_the_lines() -> None:
    for line in stdio_lines(Path("/my state")).values():
        assert "'COMPUTER_LINKER_HOME=/my state'" in line


def test_the_set_up_of_clients_keeps_the_token_to_itself(home: Path, folder: Path) -> None:
    config = set_up(home, SetupChoices(folder)).config
    token = config.owner_token or ""
    assert token not in client_lines(config, home, None).model_dump_json()
    assert token in client_lines(config, home, None, show_token=True).model_dump_json()


def test_codex_is_on_the_list_only_where_it_was_asked_for(home: Path, folder: Path) -> None:
    listed = set_up(home, SetupChoices(folder, shell=True)).config.scopes[0].policy
    assert listed.allow_shell and listed.allowed_commands is not None
    assert not {"codex *", "claude *", "agent-browser *"} & set(map(str, listed.allowed_commands))
    again = set_up(home, SetupChoices(folder, codex=True)).config.scopes[0].policy
    assert again.allowed_commands == [*listed.allowed_commands, "codex *"]
