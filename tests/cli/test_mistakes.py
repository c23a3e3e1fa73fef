"""Mistakes on the command line: the answer has the names that the command had, and what would work."""

import json
from pathlib import Path

import pytest

from support.commands import command
from support.service import write_config


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_config(tmp_path / "home", tmp_path / "root", token="t" * 32)
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("scope", "edit", "app", "--policy", "confirm=al"), "scope app: `confirm` should be 'never', 'act' or 'all'"),
        (("scope", "edit", "app", "--allow", "fs:wirte"), "scope app: `capabilities` unknown capability 'fs:wirte'"),
        (("config", "set", "port", "abc"), "`port` should be a valid integer"),
    ],
)
def test_a_wrong_value_is_named_as_it_was_given(home: Path, words: tuple[str, ...], answer: str) -> None:
    before = (home / "config.json").read_bytes()
    done = command(home, *words)
    assert done.returncode != 0 and done.stderr.startswith(f"error: {answer}"), done.stderr
    assert "config.json" not in done.stderr and (home / "config.json").read_bytes() == before


def test_validate_is_about_the_file_alone(home: Path) -> None:
    assert command(home, "config", "validate").stdout.splitlines()[0] == "config.json is valid."
    (home / "config.json").write_text("{")
    done = command(home, "config", "validate")
    assert done.returncode == 1 and "not valid" in done.stdout and "release" not in done.stdout


@pytest.mark.parametrize("since", ["yesterday", "14:50"])
def test_a_time_that_is_none_is_answered_with_every_form(home: Path, since: str) -> None:
    assert command(home, "config", "set", "machineName", "one").returncode == 0
    done = command(home, "history", "--since", since)
    assert done.returncode != 0 and "30m, 12h or 3d" in done.stderr and "2026-11-01" in done.stderr


def test_an_export_without_evidence_names_what_keeps_some(home: Path, tmp_path: Path) -> None:
    done = command(home, "proof", "export", "--html", tmp_path / "proof.html")
    assert done.returncode == 1 and "no evidence is kept yet" in done.stderr
    assert "proof attach FILE" in done.stderr and "computer-linker history" in done.stderr
    assert not (tmp_path / "proof.html").exists()


def test_the_profile_and_the_status_agree_on_what_runs(home: Path) -> None:
    assert json.loads(command(home, "profile", "--json").stdout)["running"] is False
    try:
        assert command(home, "op", "file.list", ".").returncode == 0
        shown = json.loads(command(home, "profile", "--json").stdout)
        assert (shown["running"], shown["servingHttp"]) == (True, False)
        assert "running for local clients" in command(home, "status").stdout
    finally:
        command(home, "stop")
