"""`computer-linker undo`: a change of files by any client, the newest one, with a service and without."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from computer_linker.client.blocking import Client
from computer_linker.errors import ConfirmRequired
from support.commands import command
from support.events import event_of, owners_history
from support.service import end_service, wait_for, write_config


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home"
    write_config(folder, tmp_path / "root")
    yield folder
    end_service(folder)


def cli(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command(home, *words)


def write(home: Path, name: str, content: str) -> str:
    """A client writes a file; the id of the operation."""
    with Client.over_socket(home) as client:
        client.call("app", "file.write", name, {"content": content})
    wrote = ("file.write", name, "done")
    found: list[str] = wait_for(
        lambda: [e["operationId"] for e in owners_history(home) if (e["op"], e["target"], e["outcome"]) == wrote]
    )
    return found[0]


@pytest.mark.parametrize("is_running", [True, False], ids=["service", "no service"])
def test_a_clients_change_is_taken_back_by_its_id(home: Path, tmp_path: Path, is_running: bool) -> None:
    notes = tmp_path / "root" / "notes.txt"
    notes.write_text("before")
    changed = write(home, "notes.txt", "after")
    assert notes.read_text() == "after"
    if not is_running:
        end_service(home)
    ran = cli(home, "undo", changed)
    assert (ran.returncode, ran.stdout) == (0, f"Took back {changed} in app.\nrestored notes.txt\n"), ran.stderr
    assert notes.read_text() == "before"
    undo, inner = (event_of(home, op) for op in ("undo", "file.undo"))
    assert (undo["effect"], undo["summary"]["undone"]) == ("confirmed", changed)
    assert inner["parent"] == undo["operationId"] and inner["principal"] == undo["principal"]
    again = cli(home, "undo", changed)
    assert again.returncode == 1 and again.stderr.startswith("error: There is nothing kept to undo")


@pytest.mark.parametrize("is_running", [True, False], ids=["service", "no service"])
def test_where_a_scope_asks_first_the_owners_undo_is_the_yes(home: Path, tmp_path: Path, is_running: bool) -> None:
    changed = write(home, "notes.txt", "after")
    assert cli(home, "scope", "edit", "app", "--policy", "confirm=all").returncode == 0
    if not is_running:
        end_service(home)
    ran = cli(home, "undo", changed)
    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "root" / "notes.txt").exists()
    undo, inner = (event_of(home, op) for op in ("undo", "file.undo"))
    given = inner["approval"]
    assert inner["decision"] == "ask" and given is not None
    assert (given["said"], given["by"], given["answer"]) == ("yes", undo["principal"], undo["operationId"])
    with Client.over_socket(home) as client, pytest.raises(ConfirmRequired):
        client.call("app", "file.write", "more.txt", {"content": "x"})
    assert list((tmp_path / "root").iterdir()) == []


def test_a_file_that_was_changed_since_stays(home: Path, tmp_path: Path) -> None:
    changed = write(home, "notes.txt", "after")
    (tmp_path / "root" / "notes.txt").write_text("mine")
    ran = cli(home, "undo", changed)
    assert ran.returncode == 1 and "conflict" in ran.stderr
    assert (tmp_path / "root" / "notes.txt").read_text() == "mine"


def test_last_is_the_newest_change_of_config_or_files(home: Path, tmp_path: Path) -> None:
    first, second = write(home, "one.txt", "1"), write(home, "two.txt", "2")
    before = (home / "config.json").read_bytes()
    assert cli(home, "token", "rotate", "--json").returncode == 0, "which cannot be undone"
    rotated = (home / "config.json").read_bytes()
    assert rotated != before
    for expected in (second, first):
        assert json.loads(cli(home, "undo", "last", "--json").stdout)["undone"] == expected
    assert list((tmp_path / "root").iterdir()) == []
    none = cli(home, "undo", "last")
    assert none.returncode == 1 and none.stderr.startswith("error: There is nothing kept to undo.")
    assert (home / "config.json").read_bytes() == rotated


@pytest.mark.parametrize("name", ["../config", "nothing", "01KA00000000000000000000AA"])
def test_what_is_unknown_is_refused_and_changes_nothing(home: Path, name: str) -> None:
    before = (home / "config.json").read_bytes()
    ran = cli(home, "undo", name)
    assert ran.returncode == 1 and ran.stderr.startswith("error: There is nothing kept to undo")
    assert (home / "config.json").read_bytes() == before


def test_a_path_named_again_goes_further_back_and_each_undo_is_one_row(home: Path, tmp_path: Path) -> None:
    notes = tmp_path / "root" / "notes.txt"
    notes.write_text("first")
    write(home, "notes.txt", "second")
    with Client.over_socket(home) as client:
        client.call("app", "file.write", "notes.txt", {"content": "third"})
    for content in ("second", "first"):
        ran = cli(home, "undo", "notes.txt")
        assert ran.returncode == 0 and notes.read_text() == content, ran.stderr
    again = cli(home, "undo", "notes.txt")
    assert again.returncode == 1 and "nothing kept to undo notes.txt" in again.stderr
    assert notes.read_text() == "first"
    assert cli(home, "history").stdout.count("took back the change of notes.txt") == 2
