"""An undo of a config change names what it changes, and asks before it gives clients more; the history shows the values."""

import json
from pathlib import Path

import pytest

from computer_linker.config.difference import changes
from support.commands import command
from support.on_terminal import on_terminal
from support.service import write_config


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    write_config(folder, tmp_path / "root", token="t" * 32)
    return folder


def good(home: Path, *words: str) -> str:
    ran = command(home, *words)
    assert ran.returncode == 0, (words, ran.stderr)
    return ran.stdout


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("edit", "app", "--policy", "confirm=all"), "app: confirm never -> all|app: confirm all -> never"),
        (("edit", "app", "--deny", "fs:write"), "app: capabilities removed fs:write|app: capabilities added fs:write"),
        (("deny", "app", "git push *"), "app: deniedCommands added git push *|app: deniedCommands removed git push *"),
        (("remove", "app"), "app: scope removed|app: scope added"),
    ],
)
def test_an_undo_that_gives_more_is_refused_without_a_yes_and_names_each_field(
    home: Path, change: tuple[str, ...], line: str
) -> None:
    done, undone = line.split("|")
    original = json.loads((home / "config.json").read_bytes())
    good(home, "scope", *change)
    changed = (home / "config.json").read_bytes()
    (record,) = (home / "config-undo").glob("*.json")
    assert done in good(home, "history", "show", record.stem)
    refused = command(home, "undo", "last")
    assert refused.returncode == 1 and undone in refused.stderr, refused.stderr
    assert f"hint: if you mean it: computer-linker undo {record.stem} --yes" in refused.stderr
    assert (home / "config.json").read_bytes() == changed and record.exists()
    assert undone in good(home, "undo", "last", "--yes")
    assert json.loads((home / "config.json").read_bytes()) == original
    assert done in good(home, "history", "show", record.stem), "also after the undo"


def test_an_undo_that_takes_rights_away_needs_no_yes_and_history_shows_the_command(home: Path) -> None:
    good(home, "scope", "edit", "app", "--policy", 'allowedCommands=["ls"]')
    good(home, "scope", "allow", "app", "git *")
    record = max((home / "config-undo").glob("*.json"))
    shown = good(home, "history", "show", record.stem)
    assert "git *" in shown and "characters, " not in shown
    undone = good(home, "undo", "last")
    assert "app: allowedCommands removed git *" in undone


@pytest.mark.parametrize(("answer", "confirm"), [("y", "never"), ("n", "all")])
def test_a_person_at_a_terminal_is_asked(home: Path, answer: str, confirm: str) -> None:
    good(home, "scope", "edit", "app", "--policy", "confirm=all")
    shown = on_terminal(home, ["undo", "last"], 200, answer=answer)
    assert "app: confirm all -> never" in shown and "Go on?" in shown
    scope = json.loads((home / "config.json").read_bytes())["scopes"][0]
    assert scope.get("policy", {}).get("confirm", "never") == confirm


_SCOPE = {"id": "a", "roots": ["/srv/a"], "capabilities": ["fs:read", "command:run"]}


def _document(policy: dict[str, object], **top: object) -> dict[str, object]:
    return {"machineId": "m", "machineName": "n", "scopes": [{**_SCOPE, "policy": policy}], **top}


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ({"confirm": "act"}, {"confirm": "never"}),
        ({"sandbox": "required"}, {"sandbox": "auto"}),
        ({"outcome": "ask"}, {"outcome": "view"}),
        ({"network": False}, {"network": ["npm"]}),
        ({"network": ["npm"]}, {"network": True}),
        ({"network": False}, {"network": True}),
        ({"allowedCommands": []}, {"allowedCommands": ["ls"]}),
        ({"allowedCommands": ["ls"]}, {}),
        ({"deniedPaths": ["x"]}, {}),
        ({"maxRuntimeSeconds": 5}, {}),
        ({"allowWindows": False}, {}),
        ({}, {"environment": ["HOME"]}),
    ],
)
def test_each_policy_field_knows_its_wider_side(narrow: dict[str, object], wide: dict[str, object]) -> None:
    (wider,) = changes(_document(narrow), _document(wide))
    (narrower,) = changes(_document(wide), _document(narrow))
    assert wider.widens and not narrower.widens, (wider, narrower)


def test_a_narrow_scope_inside_another_one_limits_it() -> None:
    inner = {"id": "b", "roots": ["/srv/a/b"], "capabilities": ["fs:read"]}
    outer = _document({})
    both = {**outer, "scopes": [*_listed(outer), inner]}
    (removed,) = changes(both, outer)
    assert removed.widens and removed.line == "b: scope removed"


def test_no_line_has_a_token() -> None:
    assert changes(_document({}, ownerToken="a" * 32), _document({}, ownerToken="b" * 32)) == []


def _listed(document: dict[str, object]) -> list[object]:
    scopes = document["scopes"]
    assert isinstance(scopes, list)
    return scopes
