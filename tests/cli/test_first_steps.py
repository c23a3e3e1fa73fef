"""The first commands of a new owner, and command words of earlier versions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from computer_linker.cli.app import main
from computer_linker.config.load import load

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("COMPUTER_LINKER_HOME", str(tmp_path / "state"))
    (tmp_path / "app").mkdir()

    def call(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def answer(run: Run, *words: str) -> Any:
    code, out, err = run(*words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_quickstart_shows_what_start_would_do_and_does_nothing(run: Run, tmp_path: Path) -> None:
    """Point 000-214."""
    planned = answer(run, "quickstart", str(tmp_path / "app"), "--git", "--shell")
    (scope,) = planned["scopes"]
    assert {"git:write", "command:run"} <= set(scope["capabilities"]) and planned["wouldDo"]
    assert not (tmp_path / "state").exists()
    assert [one["id"] for one in answer(run, "quickstart")["scopes"]] == ["demo"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app"], "no demo folder was made"
    assert answer(run, "setup", str(tmp_path / "app"), "--git", "--shell")["scopes"] == planned["scopes"]
    assert answer(run, "quickstart", str(tmp_path / "app"))["wouldDo"] == []
    assert run("quickstart", str(tmp_path / "missing"))[0] == 1


def test_init_makes_a_config_and_a_token_and_exposes_nothing(run: Run, tmp_path: Path) -> None:
    """Point 001-006."""
    assert answer(run, "init")["done"]
    config = load(tmp_path / "state")
    assert config.owner_token and config.scopes == []
    assert answer(run, "init")["done"] == [] and load(tmp_path / "state") == config
    run("config", "set", "ownerToken", "null")
    assert answer(run, "init")["done"] == ["Made an owner token."] and load(tmp_path / "state").owner_token


def test_command_words_of_earlier_versions_still_work(run: Run, tmp_path: Path) -> None:
    """Points 001-007 and 001-098."""
    assert run("workspace", "add", str(tmp_path / "app"), "--id", "app")[0] == 0
    assert run("workspace", "update", "app", "--name", "Main")[0] == 0
    assert answer(run, "workspace", "list")["scopes"][0]["name"] == "Main"
    before = load(tmp_path / "state").owner_token
    assert run("config", "token", "rotate")[0] == 0
    assert load(tmp_path / "state").owner_token not in (None, before)
    assert answer(run, "client", "chatgpt", "profile")["machineId"] == load(tmp_path / "state").machine_id


def test_what_chatgpt_needs_is_printed_by_parts(run: Run, tmp_path: Path) -> None:
    """Point 001-097."""
    run("init")
    code, out, err = run("client", "chatgpt", "url")
    assert (code, out) == (1, "") and "--tunnel" in err
    run("config", "set", "publicBaseUrl", "https://linker.example.com")
    assert run("client", "chatgpt", "url")[1] == "https://linker.example.com/mcp\n"
    manifest = json.loads(run("client", "chatgpt", "manifest")[1])
    assert manifest["fields"]["MCP Server URL"] == "https://linker.example.com/mcp"
    assert "https://linker.example.com/mcp" in run("client", "chatgpt", "connector")[1]


def test_the_short_help_names_tunnels_and_the_preview(run: Run) -> None:
    """Point 000-214."""
    out = run("--help")[1]
    assert "--tunnel cloudflare" in out and "quickstart FOLDER" in out
