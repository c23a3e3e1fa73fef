"""The config as it is now."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from computer_linker.config.live import LiveConfig
from computer_linker.config.runtime import effective
from computer_linker.config.schema import Config
from computer_linker.config.store import ensure, update
from computer_linker.errors import ConfigInvalid, ExecutionFailed
from computer_linker.policy.paths import is_denied, rules_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    ensure(folder, "t" * 32)
    return folder


def add_scope(home: Path, root: Path, scope_id: str = "app") -> None:
    scope: dict[str, Any] = {"id": scope_id, "roots": [str(root)], "capabilities": ["fs:read"]}
    update(home, lambda value: value["scopes"].append(scope))


def test_a_change_holds_from_the_next_call_on(home: Path, tmp_path: Path) -> None:
    live = LiveConfig(home, fresh_for_s=0)
    assert live.current().scopes == []
    add_scope(home, tmp_path)
    assert [scope.id for scope in live.current().scopes] == ["app"]
    update(home, lambda value: value.update(ownerToken="n" * 32))
    assert live.current().owner_token == "n" * 32


def test_an_unchanged_file_is_not_read_again(home: Path) -> None:
    live = LiveConfig(home, fresh_for_s=0)
    assert live.current() is live.current()


def test_a_thread_that_asks_during_a_read_gets_what_was_read(home: Path, tmp_path: Path) -> None:
    reading, goes_on = threading.Event(), threading.Event()

    def check(config: Config) -> list[str]:
        if config.scopes:
            reading.set()
            assert goes_on.wait(30)
        return []

    live = LiveConfig(home, check, fresh_for_s=0)
    assert live.current().scopes == []
    add_scope(home, tmp_path)
    with ThreadPoolExecutor(2) as threads:
        try:
            first = threads.submit(live.current)
            assert reading.wait(30)
            second = threads.submit(live.current)
            wait([second], timeout=0.5)
            assert not second.done(), "neither an error nor the config of before"
        finally:
            goes_on.set()
        assert second.result(30) is first.result(30)
    assert [scope.id for scope in live.current().scopes] == ["app"]


def put(home: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Edit the file by hand, without a check."""
    value = json.loads((home / "config.json").read_text())
    change(value)
    (home / "config.json").write_text(json.dumps(value))


def test_a_file_that_is_broken_at_the_start_is_refused_until_it_is_corrected(home: Path) -> None:
    good = (home / "config.json").read_text()
    (home / "config.json").write_text(good.replace('"port": 3939', '"port": "3939"'))
    live = LiveConfig(home, fresh_for_s=0)
    for _ in range(2):
        with pytest.raises(ConfigInvalid, match="`port`"):
            live.current()
    (home / "config.json").write_text(good)
    assert live.current().port == 3939


@pytest.mark.parametrize("text", ["", "{", '{"port": "x"}', '{"scopes": 5}', "[]"])
def test_the_last_valid_config_stays_in_force_and_has_the_reason(home: Path, tmp_path: Path, text: str) -> None:
    add_scope(home, tmp_path)
    live = LiveConfig(home, fresh_for_s=0)
    good, raw = live.current(), (home / "config.json").read_bytes()
    assert good.refused == ()
    (home / "config.json").write_text(text)
    held = live.current()
    assert held.refused and held.refused[0].startswith("config.json:")
    assert (held.machine_id, held.port, [scope.id for scope in held.scopes]) == (good.machine_id, good.port, ["app"])
    assert live.current() is held
    assert (home / "config.json").read_text() == text, "the file is the owner's to correct"
    (home / "config.json").write_bytes(raw)
    assert live.current().refused == ()


def test_a_refused_file_adds_no_right_and_takes_away_what_it_changes(home: Path, tmp_path: Path) -> None:
    for name in ("kept", "gone", "changed"):
        (tmp_path / name).mkdir()
        add_scope(home, tmp_path / name, name)
    live = LiveConfig(home, fresh_for_s=0)
    assert all(scope.granted for scope in live.current().scopes)

    def edit(value: dict[str, Any]) -> None:
        kept, _gone, changed = value["scopes"]
        changed["capabilities"] = ["fs:read", "fs:write"]
        value["scopes"] = [kept, changed, {"id": "new", "roots": [str(tmp_path)], "capabilities": ["fs:write"]}]
        value["porrt"] = 1

    put(home, edit)
    rights = {scope.id: bool(scope.granted) for scope in live.current().scopes}
    assert rights == {"kept": True, "gone": False, "changed": False}


def test_a_refused_file_of_the_older_form_or_with_a_doubled_key_leaves_no_right(home: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    token = {"ownerToken": "t" * 32}
    one, two = ({"id": name, "path": str(tmp_path / name), "read": True, "write": True} for name in ("one", "two"))
    (home / "config.json").write_text(json.dumps({**token, "workspaces": [one, two]}))
    live = LiveConfig(home, fresh_for_s=0)
    assert all("fs:write" in scope.granted for scope in live.current().scopes)
    narrower = {**token, "workspaces": [{**one, "write": False}, {**two, "raed": True}]}
    doubled = json.dumps({**token, "scopes": []})[:-1] + ', "workspaces": [], "workspaces": []}'
    for text in (json.dumps(narrower), doubled):
        (home / "config.json").write_text(text)
        held = live.current()
        assert held.refused and not any(scope.granted for scope in held.scopes)


def test_a_refused_file_that_changes_the_token_lets_neither_in(home: Path) -> None:
    live = LiveConfig(home, fresh_for_s=0)
    assert live.current().owner_token == "t" * 32
    put(home, lambda value: value.update(ownerToken="n" * 32, approvalPage=True, surprise=1))
    held = live.current()
    assert held.owner_token not in (None, "t" * 32, "n" * 32) and not held.approval_page
    put(home, lambda value: value.pop("surprise"))
    assert live.current().owner_token == "n" * 32


def test_a_file_that_becomes_writable_for_others_stops_every_call(home: Path) -> None:
    live = LiveConfig(home, fresh_for_s=0)
    live.current()
    (home / "config.json").chmod(0o666)
    with pytest.raises(ConfigInvalid, match="other users"):
        live.current()
    (home / "config.json").chmod(0o600)
    assert live.current().port == 3939


def test_a_file_that_is_gone_stops_every_call(home: Path) -> None:
    live = LiveConfig(home, fresh_for_s=0)
    live.current()
    (home / "config.json").unlink()
    with pytest.raises(ConfigInvalid):
        live.current()


def test_the_refusal_has_a_code_of_the_wire() -> None:
    assert issubclass(ConfigInvalid, ExecutionFailed)
    assert ConfigInvalid("x", "y").details == {"hint": "y"}


def test_the_state_folder_is_kept_out_of_a_scope_around_it(home: Path, tmp_path: Path) -> None:
    add_scope(home, tmp_path)
    config = LiveConfig(home, fresh_for_s=0).current()
    rules = rules_of(config.scopes[0], config.scopes[0].roots[0], config)
    assert is_denied(("state",), rules.denied)
    assert is_denied(("state", "config.json"), rules.denied)
    assert not is_denied(("other", "config.json"), rules.denied)
    assert "deniedPaths" not in json.dumps(json.loads((home / "config.json").read_text()))


def test_a_root_is_resolved_when_the_config_is_read(home: Path, tmp_path: Path) -> None:
    real, other = tmp_path / "real", tmp_path / "other"
    real.mkdir()
    other.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    add_scope(home, link)
    live = LiveConfig(home, fresh_for_s=0)
    assert live.current().scopes[0].roots == [str(real)]
    link.unlink()
    link.symlink_to(other)
    assert live.current().scopes[0].roots == [str(real)]


def test_the_public_address_can_come_from_the_environment(home: Path) -> None:
    config = LiveConfig(home, fresh_for_s=0).current()
    address = "https://linker.example.com"
    assert effective(config, home, {"COMPUTER_LINKER_PUBLIC_BASE_URL": address}).public_base_url == address
    with pytest.raises(ConfigInvalid, match="publicBaseUrl"):
        effective(config, home, {"COMPUTER_LINKER_PUBLIC_BASE_URL": "nonsense"})
