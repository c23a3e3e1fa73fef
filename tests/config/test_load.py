"""Reading config.json: strict, private, and never replaced."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from computer_linker.config.live import LiveConfig
from computer_linker.config.load import load
from computer_linker.errors import ConfigInvalid


def document(root: Path, **changes: Any) -> dict[str, Any]:
    scope = {"id": "app", "type": "folder", "roots": [str(root)], "capabilities": ["fs:read"]}
    return {"schemaVersion": 1, "machineId": "m1", "machineName": "desk", "scopes": [scope], **changes}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    (tmp_path / "root").mkdir()
    return folder


def put(home: Path, text: str | dict[str, Any], mode: int = 0o600) -> Path:
    path = home / "config.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    path.chmod(mode)
    return path


def refused(home: Path) -> ConfigInvalid:
    """The refusal, with the file left byte for byte as it was."""
    path = home / "config.json"
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(ConfigInvalid) as caught:
        LiveConfig(home).current()
    assert (path.read_bytes() if path.exists() else None) == before
    assert caught.value.hint
    return caught.value


def test_a_whole_file_loads(home: Path, tmp_path: Path) -> None:
    put(home, document(tmp_path / "root", ownerToken="x" * 32, port=4000))
    config = load(home)
    assert (config.machine_id, config.port, config.scopes[0].id) == ("m1", 4000, "app")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"port": "3939"}, "port"),
        ({"port": 70000}, "port"),
        ({"port": True}, "port"),
        ({"surprise": 1}, "surprise"),
        ({"ownerToken": "short"}, "ownerToken"),
        ({"ownerToken": "has a space in it and is long"}, "ownerToken"),
        ({"publicBaseUrl": "ftp://x"}, "publicBaseUrl"),
        ({"machineId": ""}, "machineId"),
        ({"schemaVersion": 2}, "schemaVersion"),
        ({"scopes": [{"id": "a", "roots": ["relative"], "capabilities": []}]}, "scopes.0"),
        ({"scopes": [{"id": "a", "roots": ["/tmp"], "capabilities": ["fs:everything"]}]}, "scopes.0.capabilities"),
        ({"scopes": [{"id": "a", "roots": ["/tmp"], "policy": {"netwrok": True}}]}, "scopes.0.policy.netwrok"),
        ({"scopes": [{"id": "../a", "roots": ["/tmp"]}]}, "scopes.0.id"),
        ({"scopes": [{"id": "a", "roots": []}]}, "scopes.0"),
        ({"scopes": [{"id": "a", "roots": ["/"]}]}, "scopes.0.roots.0"),
        ({"scopes": [{"id": "a", "roots": ["/tmp/.."]}]}, "scopes.0.roots.0"),
        ({"scopes": "all"}, "scopes"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_changed(home: Path, tmp_path: Path, change: Any, field: str) -> None:
    put(home, document(tmp_path / "root", **change))
    assert f"`{field}`" in refused(home).message


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '{"machineId": "a", "machineId": "b"}', '{"port": NaN}', '{"port": Infinity}',
        '{"machineId": "\\ud800"}', "[" * 100_000, '{"port": ' + "9" * 5000 + "}", '{"a": 1} trailing',
    ],
)  # fmt: skip
def test_text_that_is_not_plain_json_is_refused(home: Path, text: str) -> None:
    put(home, text)
    refused(home)


def test_bytes_that_are_not_text_are_refused(home: Path) -> None:
    (home / "config.json").write_bytes(b"\xff\xfe\x00")
    refused(home)


def test_a_huge_file_is_refused(home: Path) -> None:
    put(home, " " * 1_000_001)
    assert "larger" in refused(home).message


def test_two_scopes_with_one_id_are_refused(home: Path, tmp_path: Path) -> None:
    scope = document(tmp_path / "root")["scopes"][0]
    put(home, document(tmp_path / "root", scopes=[scope, scope]))
    assert "app" in refused(home).message


def test_a_refusal_never_repeats_the_token(home: Path, tmp_path: Path) -> None:
    put(home, document(tmp_path / "root", ownerToken="TOPSECRET with a space"))
    assert "TOPSECRET" not in str(refused(home))


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602, 0o777])
def test_a_file_others_can_write_is_refused(home: Path, tmp_path: Path, mode: int) -> None:
    put(home, document(tmp_path / "root"), mode)
    assert "other users" in refused(home).message


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_others_can_write_is_refused(home: Path, tmp_path: Path, mode: int) -> None:
    put(home, document(tmp_path / "root"))
    home.chmod(mode)
    assert "other users" in refused(home).message


def test_a_folder_below_one_anybody_can_change_is_refused(home: Path, tmp_path: Path) -> None:
    put(home, document(tmp_path / "root"))
    tmp_path.chmod(0o777)
    try:
        assert "any user" in refused(home).message
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_file_of_another_user_is_refused(home: Path, tmp_path: Path) -> None:
    os.chown(put(home, document(tmp_path / "root")), 65534, 65534)
    assert "another user" in refused(home).message


def test_a_link_is_refused_even_to_a_good_file(home: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.json"
    real.write_text(json.dumps(document(tmp_path / "root")))
    (home / "config.json").symlink_to(real)
    assert "link" in refused(home).message


def test_a_second_name_of_the_file_is_refused(home: Path, tmp_path: Path) -> None:
    os.link(put(home, document(tmp_path / "root")), tmp_path / "root" / "innocent.json")
    assert "second name" in refused(home).message


def test_a_pipe_in_its_place_does_not_hang(home: Path) -> None:
    os.mkfifo(home / "config.json", 0o600)
    with pytest.raises(ConfigInvalid):
        load(home)


def test_a_missing_file_says_what_to_run(home: Path) -> None:
    assert "setup" in refused(home).hint


def test_an_identity_left_out_is_made_once(home: Path, tmp_path: Path) -> None:
    whole = document(tmp_path / "root")
    del whole["machineId"], whole["machineName"]
    path = put(home, whole)
    before = path.read_bytes()
    first = load(home)
    assert first.machine_id.startswith("machine-") and first.machine_name
    assert load(home).machine_id == first.machine_id
    assert path.read_bytes() == before


def test_a_root_in_the_state_folder_is_refused(home: Path, tmp_path: Path) -> None:
    inside = home / "inside"
    inside.mkdir()
    for root in (home, inside):
        put(home, document(root))
        assert "state folder" in refused(home).message


def test_a_link_to_the_state_folder_is_refused_as_a_root(home: Path, tmp_path: Path) -> None:
    (tmp_path / "innocent").symlink_to(home)
    put(home, document(tmp_path / "innocent"))
    assert "state folder" in refused(home).message


def test_more_checks_can_refuse_the_file(home: Path, tmp_path: Path) -> None:
    put(home, document(tmp_path / "root"))
    with pytest.raises(ConfigInvalid, match=r"scope app: the rule is unfit"):
        load(home, lambda config: ["scope app: the rule is unfit"])


def test_every_problem_is_named_at_once_with_its_line_and_column(home: Path) -> None:
    put(
        home,
        """{
  "port": "3939",
  "scpoes": [],
  "scopes": [
    {"id": "a", "roots": ["/tmp"], "capabilities": ["fs:raed"],
     "policy": {"netwrok": true, "confirm": "alll", "allowedCommands": [1]}},
    {"roots": ["/tmp"]}
  ]
}""",
    )
    error = refused(home)
    assert [str(problem) for problem in error.problems] == [
        "config.json:2:11: `port` should be a valid integer",
        "config.json:3:3: `scpoes` is not a field of the config; did you mean `scopes`?",
        "config.json:5:52: `scopes.0.capabilities` unknown capability 'fs:raed' (did you mean `fs:read`?)",
        "config.json:6:17: `scopes.0.policy.netwrok` is not a field of the config; did you mean `network`?",
        "config.json:6:45: `scopes.0.policy.confirm` should be 'never', 'act' or 'all'; did you mean `all`?",
        "config.json:6:73: `scopes.0.policy.allowedCommands.0` should be a valid string",
        "config.json:7:5: `scopes.1.id` is needed",
    ]
    assert error.message == "; ".join(str(problem) for problem in error.problems)


def test_every_forbidden_root_is_named_at_once_with_its_place(home: Path) -> None:
    put(home, '{"scopes": [{"id": "a", "roots": ["/", "/tmp",\n "/tmp/.."]}]}')
    assert [(p.line, p.column, p.field[-1]) for p in refused(home).problems] == [(1, 35, 0), (2, 2, 2)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"port": 1,\n "host": }', "config.json:2:10: is not valid JSON: expecting value"),
        ('{"port": 1,\n "port": 2}', "config.json:2:2: `port` is a doubled key"),
        ('{"port": "1', "config.json:1:10: is not valid JSON: unterminated string"),
        ('{"port": 1', "config.json:1:11: is not valid JSON: expecting ',' delimiter"),
        ("5", "config.json:1:1: must be an object"),
    ],
)
def test_a_file_that_is_no_json_object_has_its_place_named(home: Path, text: str, problem: str) -> None:
    put(home, text)
    assert refused(home).message == problem
