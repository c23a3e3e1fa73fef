"""The owner's operations: fit to be served, apart from the clients', and each a command of the same name."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from computer_linker import operations, owner
from computer_linker.cli.app import build
from computer_linker.errors import InvalidRequest, UnknownScope
from computer_linker.model.effect import Effect
from computer_linker.model.principal import Principal
from computer_linker.policy.engine import find_scope
from computer_linker.registry.catalog import check_types, collect
from computer_linker.registry.operation import Operation
from support.service import serving, write_config
from support.terminal import history, run

OWNER = collect(owner)
COMMANDS: Any = typer.main.get_command(build(everything=True))


def named(op: Operation) -> str:
    return op.name


@pytest.mark.parametrize("op", OWNER.operations.values(), ids=named)
def test_each_is_fit_to_be_served(op: Operation) -> None:
    check_types(op)
    assert op.on == "service" and op.command is not None
    assert not op.needs and op.parameters.keys() <= {"input"}
    for example in op.examples:
        op.parse(None, example.request.get("input", {}), None)


@pytest.mark.parametrize(
    "op", [op for op in OWNER.operations.values() if op.command and op.command.is_derived], ids=named
)
def test_each_is_a_command_with_the_fields_as_words(op: Operation) -> None:
    command = COMMANDS
    words = (op.command and op.command.words) or (op.name.replace(".", " ").replace("_", "-"),)
    for word in words[0].split():
        command = command.commands[word]
    assert command.help
    known = {parameter.name for parameter in command.params} - {"help"}
    fields = op.hints["input"].model_fields if "input" in op.parameters else {}
    assert known == {*fields, "as_json"}
    assert all(parameter.help for parameter in command.params)


def test_a_name_that_clients_know_too_is_the_same_question_or_act() -> None:
    shared = OWNER.by_name.keys() & collect(operations).by_name.keys()
    assert shared == {"history.verify", "process.list", "process.read", "process.stop"}


@pytest.mark.parametrize("proof", ["local_user", "owner_token", "oauth", "loopback", "peer", "bridge"])
def test_only_the_owner_reaches_the_service_itself(proof: Any) -> None:
    def config() -> Any:
        from computer_linker.config.schema import Config

        return Config(machine_id="m", machine_name="m")

    with pytest.raises(UnknownScope):
        find_scope(config, "", Principal("local:someone", proof, "s", "c"))
    assert find_scope(config, "", Principal("cli:someone", "cli", "s", "c")).type == "service"  # type: ignore[comparison-overlap]  # a scope of its own kind, in no config


def test_an_act_without_a_service_is_in_the_history(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "app"
    folder.mkdir()
    added = json.loads(run(home, "scope", "add", str(folder), "--json").stdout)
    assert added["id"] == "app" and added["roots"] == [str(folder)]
    [event] = history(home)
    assert (event["op"], event["ok"], event["effect"]) == ("scope.add", True, "confirmed")
    assert event["principal"].startswith("cli:") and event["summary"]["scope"] == "app"


def test_an_act_in_the_service_is_in_the_history_and_a_question_is_not(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        assert run(service.home, "scope", "list").returncode == 0
        assert run(service.home, "scope", "edit", "app", "--deny", "fs:write").returncode == 0
        assert [event["op"] for event in history(service.home)] == ["scope.edit", "service.start"]


def test_a_refused_act_is_in_the_history_and_changes_nothing(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "app"
    folder.mkdir()
    write_config(home, folder)
    before = (home / "config.json").read_bytes()
    refused = run(home, "scope", "remove", "other")
    assert refused.returncode == 1 and "hint: computer-linker scope list" in refused.stderr
    assert (home / "config.json").read_bytes() == before
    [event] = history(home)
    assert (event["op"], event["ok"], event["errorCode"]) == ("scope.remove", False, "not_found")


def test_a_change_of_the_config_can_be_taken_back_until_it_is_changed_again(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "app"
    folder.mkdir()
    write_config(home, folder)
    before = json.loads((home / "config.json").read_bytes())
    assert run(home, "scope", "edit", "app", "--name", "One").returncode == 0
    first = history(home)[0]["operationId"]
    assert run(home, "scope", "edit", "app", "--name", "Two").returncode == 0
    second = history(home)[0]["operationId"]
    refused = run(home, "undo", first)
    assert refused.returncode == 1 and "changed since" in refused.stderr
    assert run(home, "undo", second).returncode == 0
    assert run(home, "undo", first).returncode == 0
    assert json.loads((home / "config.json").read_bytes())["scopes"] == before["scopes"]
    assert run(home, "undo", first).returncode == 1


def test_a_config_that_is_not_valid_can_be_mended_by_a_command(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        path = service.home / "config.json"
        good = path.read_bytes()
        path.write_bytes(b"{")
        assert "is not valid JSON" in run(service.home, "scope", "list").stderr
        assert run(service.home, "halt").returncode == 0, "what needs no config still works"
        path.write_bytes(good)
        assert run(service.home, "resume").returncode == 0


def test_words_that_do_not_fit_are_a_mistake_and_nothing_is_sent(tmp_path: Path) -> None:
    refused = run(tmp_path / "home", "config", "set", "colour", "blue")
    assert refused.returncode == 2 and not (tmp_path / "home").exists()


def test_an_operation_says_what_it_observes_or_changes() -> None:
    reading = {
        "list",
        "show",
        "status",
        "path",
        "detect",
        "wait",
        "verify",
        "export",
        "read",
        "logs",
        "link",
        "timeline",
    }
    for op in OWNER.operations.values():
        if op.name.rpartition(".")[2] in reading - {"link", "wait"}:
            assert op.effect is Effect.OBSERVE, op.name


def test_an_unknown_operation_is_refused_and_recorded(tmp_path: Path) -> None:
    from computer_linker.client.socket_client import ask_service

    with serving(tmp_path) as service:
        answer = ask_service(service.home, {"owner": "nothing.such", "input": {}})
        assert answer is not None and answer["error"]["code"] == "unknown_operation"


def test_input_is_parsed_strictly() -> None:
    with pytest.raises(InvalidRequest):
        OWNER.find("scope.remove").parse(None, {"scope": "app", "other": 1}, None)
