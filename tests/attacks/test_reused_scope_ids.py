"""A grant of a paired computer or a hub is for the folders that the owner gave: a new scope of an old id is not given."""

import json
from pathlib import Path
from typing import Any

import pytest

from computer_linker.config.schema import Config
from computer_linker.fleet.membership import joined_by
from computer_linker.fleet.settings import JoinRequest
from computer_linker.model.scope import Scope
from computer_linker.policy.grants import grants_that_hold
from support.road import folder_scope
from support.service import Service, owner, serving, wait_for, write_config


def read(desk: Service, scope: str) -> Any:
    http = desk.http()
    try:
        return http.control("computer_operation", scope=scope, op="file.read", target="a.txt")
    finally:
        http.close()


def test_a_paired_computer_does_not_follow_an_id_to_another_folder(tmp_path: Path) -> None:
    """Over the link that it has open, and after a new one."""
    with (
        serving(tmp_path / "desk", token=None, machineId="desk") as desk,
        serving(tmp_path / "laptop", token=None, machineId="laptop") as laptop,
    ):
        other = tmp_path / "other"
        other.mkdir()
        (laptop.root / "a.txt").write_text("given")
        (other / "a.txt").write_text("PRIVATE")

        def serve(*roots: Path) -> None:
            scope = {**folder_scope(laptop.root), "roots": [str(root) for root in roots]}
            write_config(laptop.home, laptop.root, scopes=[scope], machineId="laptop")

        owner(laptop, "peer", "listen", "--port", "0")
        shown = json.loads(owner(laptop, "peer", "pair", "--allow", "app", "--json"))
        owner(desk, "peer", "pair", shown["address"], shown["code"], "--name", "laptop")
        assert read(desk, "laptop/app")["data"]["content"] == "given"
        serve(laptop.root, other)
        assert read(desk, "laptop/app")["ok"], "one that still has a folder of then is the same"
        serve(other)
        wait_for(lambda: not read(desk, "laptop/app")["ok"])
        refused = read(desk, "laptop/app")
        assert "PRIVATE" not in json.dumps(refused) and refused["error"]["code"] == "unknown_scope", refused
        serve(laptop.root)
        wait_for(lambda: read(desk, "laptop/app")["ok"])


def test_a_hub_is_given_the_folders_that_the_scope_had(tmp_path: Path) -> None:
    def config(root: str) -> Config:
        return Config(machine_id="m", machine_name="m", scopes=[Scope.from_wire(folder_scope(tmp_path / root))])

    request = JoinRequest(url="nats://127.0.0.1:4222", hub="f" * 64, grants=["app", "app:fs:read"])
    [hub] = joined_by(request, tmp_path, config("given"), "e" * 64, None).hubs
    assert hub.places == {"app": [str(tmp_path / "given")]}
    held = {root: grants_that_hold(hub.grants, hub.places, config(root).scopes) for root in ("given", "other")}
    assert held == {"given": {"app", "app:fs:read"}, "other": frozenset()}


@pytest.mark.parametrize("places", [{}, {"another": ["/x"]}])
def test_grants_without_a_known_place_go_by_the_id(tmp_path: Path, places: dict[str, list[str]]) -> None:
    """Pairings that were made before places were kept."""
    assert grants_that_hold(("app",), places, [Scope.from_wire(folder_scope(tmp_path))]) == {"app"}
