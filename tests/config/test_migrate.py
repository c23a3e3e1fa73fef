"""The older form of the file."""

import json
from pathlib import Path
from typing import Any

import pytest

from computer_linker.config.load import load
from computer_linker.config.migrate import modernised
from computer_linker.config.store import update
from computer_linker.errors import ConfigInvalid


def legacy(**workspace: Any) -> dict[str, Any]:
    return {"machineId": "m1", "machineName": "desk", "workspaces": [{"id": "app", "path": "/srv/app", **workspace}]}


def capabilities(**flags: bool) -> list[str]:
    scope: dict[str, Any] = modernised(legacy(permissions=flags))["scopes"][0]
    return sorted(scope["capabilities"])


def test_each_flag_gives_its_rights_and_no_more() -> None:
    assert capabilities() == []
    assert capabilities(read=True) == ["fs:read", "git:read", "history:read", "search:read"]
    assert capabilities(write=True) == ["fs:write", "git:write"]
    assert capabilities(shell=True) == ["command:run", "package:run", "process:manage"]
    assert capabilities(codex=True) == ["codex:run"]
    assert capabilities(read=False, write=False, shell=False, codex=False, screen=False) == []


def test_flags_beside_the_path_are_read_too() -> None:
    assert modernised(legacy(read=True))["scopes"][0]["capabilities"][0] == "fs:read"


def test_the_screen_flag_makes_a_computer_scope() -> None:
    scopes = modernised(legacy(permissions={"read": True, "screen": True}))["scopes"]
    assert [(scope["id"], scope["type"]) for scope in scopes] == [("app", "folder"), ("screen", "computer")]
    assert scopes[1]["capabilities"] == ["screen:capture"]


def test_a_legacy_policy_is_kept_and_its_renamed_fields_follow() -> None:
    policy = {"allowedCommands": ["npm *"], "maxRuntimeSeconds": 60, "allowShellMetacharacters": True}
    scope = modernised(legacy(policy=policy))["scopes"][0]
    assert scope["policy"] == {"allowedCommands": ["npm *"], "maxRuntimeSeconds": 60, "allowShell": True}


@pytest.mark.parametrize(
    ("workspace", "field"),
    [
        ({"path": ""}, "workspaces.0.path"),
        ({"permissions": {"read": "yes"}}, "workspaces.0.permissions.read"),
        ({"permissions": {"root": True}}, "workspaces.0.permissions.root"),
        ({"permissions": []}, "workspaces.0.permissions"),
        ({"surprise": 1}, "workspaces.0.surprise"),
        ({"policy": "none"}, "workspaces.0.policy"),
    ],
)
def test_a_wrong_legacy_field_is_named(workspace: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigInvalid, match=f"`{field}`"):
        modernised(legacy(**workspace))


def test_a_setting_that_became_the_only_way_is_left_out() -> None:
    assert "publicMcpOnly" not in modernised({**legacy(), "publicMcpOnly": True})


def test_a_legacy_file_loads_and_its_first_change_keeps_a_copy(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    text = json.dumps(legacy(path=str(tmp_path), permissions={"read": True}))
    (home / "config.json").write_text(text)
    assert load(home).scopes[0].roots == [str(tmp_path)]
    assert (home / "config.json").read_text() == text
    update(home, lambda value: value.update(port=4000))
    stored = json.loads((home / "config.json").read_text())
    assert "workspaces" not in stored
    assert stored["scopes"][0]["id"] == "app"
    assert (home / "config.legacy.json").read_text() == text
