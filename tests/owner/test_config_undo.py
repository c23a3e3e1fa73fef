"""Undo of config changes: folders keep their identity, the token stays, and each change is recorded."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.config.store import locked
from computer_linker.service.changing_config import newest_config_change, undo_config_change
from computer_linker.service.scopes import pin_roots
from support.commands import command
from support.service import write_config


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    write_config(folder, tmp_path / "root", token="t" * 32)
    return folder


def cli(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command(home, *words)


def good(home: Path, *words: str) -> str:
    ran = cli(home, *words)
    assert ran.returncode == 0, (words, ran.stderr)
    return ran.stdout


def config(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "config.json").read_text())
    return found


def records(home: Path) -> list[Path]:
    return sorted((home / "config-undo").glob("*.json"))


@pytest.mark.parametrize("change", ["edit", "remove"])
def test_a_folder_replaced_before_the_undo_is_refused_until_confirmed(home: Path, tmp_path: Path, change: str) -> None:
    for name, text in (("a", "mine"), ("b", "other"), ("secret", "CANARY")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(text)
    good(home, "scope", "add", str(tmp_path / "a"), "--id", "it")
    good(
        home,
        *(("scope", "edit", "it", "--root", str(tmp_path / "b")) if change == "edit" else ("scope", "remove", "it")),
    )
    good(home, "scope", "list")
    (tmp_path / "a").rename(tmp_path / "a.old")
    (tmp_path / "a").symlink_to(tmp_path / "secret")
    good(home, "undo", "last", "--yes")
    assert config(home)["scopes"][1]["roots"] == [str(tmp_path / "a")]
    try:
        refused = cli(home, "op", "file.read", "x", "--scope", "it", "--json")
        assert refused.returncode != 0 and "CANARY" not in refused.stdout
        assert "path_out_of_scope" in refused.stdout + refused.stderr
        good(home, "scope", "confirm", "it")
        assert "CANARY" in good(home, "op", "file.read", "x", "--scope", "it", "--json")
    finally:
        cli(home, "stop")


def test_an_undone_root_that_is_the_same_folder_works(home: Path, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "root" / "x").write_text("mine")
    before = config(home)
    good(home, "scope", "edit", "app", "--root", str(tmp_path / "b"))
    good(home, "undo", "last", "--yes")
    assert config(home) == before
    try:
        assert "mine" in good(home, "op", "file.read", "x", "--scope", "app", "--json")
    finally:
        cli(home, "stop")


def test_changes_at_the_same_time_are_undone_one_by_one(home: Path) -> None:
    before = config(home)
    code = (
        "import sys; from pathlib import Path; from computer_linker.service.changing_config import change_recorded\n"
        "from computer_linker.model.ids import new_ulid\n"
        "def edit(document): document['machineName'] += sys.argv[2]\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for _ in range(5): change_recorded(Path(sys.argv[1]), new_ulid(), edit)\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(home), letter], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for letter in "abc"
    ]
    for one in running:
        assert one.stdout is not None and one.stdin is not None
        assert one.stdout.readline() == "ready\n"
    with locked(home):
        for one in running:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
    for one in running:
        one.communicate(timeout=240)
        assert one.returncode == 0
    assert len(records(home)) == 15 and len(config(home)["machineName"]) == len(before["machineName"]) + 15
    for _ in range(15):
        newest = anyio.run(newest_config_change, home)
        assert newest is not None
        anyio.run(undo_config_change, home, newest)
    assert config(home) == before and records(home) == []


@pytest.mark.parametrize("rotation", [("token", "rotate"), ("config", "set", "ownerToken", "n" * 40)])
def test_a_new_token_stays_and_does_not_end_the_chain(home: Path, rotation: tuple[str, ...]) -> None:
    good(home, "config", "set", "machineName", "one")
    good(home, *rotation)
    token = config(home)["ownerToken"]
    assert token != "t" * 32
    good(home, "config", "set", "machineName", "two")
    for expected in ("one", "test"):
        for record in records(home):
            assert "t" * 32 not in record.read_text() and token not in record.read_text()
        good(home, "undo", "last")
        assert (config(home)["machineName"], config(home)["ownerToken"]) == (expected, token)
    assert cli(home, "undo", "last").returncode == 1


def test_a_tunnel_is_left_as_it_is_and_does_not_end_the_chain(home: Path) -> None:
    good(home, "config", "set", "machineName", "one")
    changed = config(home) | {"tunnel": {"provider": "cloudflare"}}
    (home / "config.json").write_text(json.dumps(changed))
    good(home, "tunnel", "stop")
    assert len(records(home)) == 1, "its own commands open and close a tunnel"
    good(home, "undo", "last")
    assert config(home)["machineName"] == "test" and config(home)["tunnel"]["provider"] is None


def test_setup_is_undone_like_any_change(home: Path, tmp_path: Path) -> None:
    before = config(home)
    good(home, "config", "set", "machineName", "one")
    (tmp_path / "more").mkdir()
    good(home, "setup", str(tmp_path / "more"))
    assert [scope["id"] for scope in config(home)["scopes"]] == ["app", "more"]
    good(home, "undo", "last")
    good(home, "undo", "last")
    assert config(home) == before


def test_last_takes_back_an_edit_by_hand_before_an_older_command(home: Path) -> None:
    good(home, "config", "set", "machineName", "one")
    (home / "config.json").write_text(json.dumps(config(home) | {"machineName": "by hand"}))
    before = (home / "config.json").read_bytes()
    named = cli(home, "undo", records(home)[0].stem)
    assert named.returncode == 1 and "changed since" in named.stderr
    assert (home / "config.json").read_bytes() == before
    assert "config: machineName by hand -> one" in good(home, "undo", "last")
    assert config(home)["machineName"] == "one"


@pytest.mark.parametrize(
    "words",
    [
        ("config", "set", "port", "4000"), ("scope", "edit", "app", "--name", "x"), ("scope", "remove", "app"),
        ("scope", "confirm", "app"), ("tunnel", "stop"), ("undo", "last"),
    ],
)  # fmt: skip
def test_before_the_first_setup_a_change_is_refused_and_makes_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    home = tmp_path / "fresh"
    ran = cli(home, *words)
    assert ran.returncode == 1
    assert ran.stderr == "error: this computer is not set up yet\nhint: run: computer-linker start FOLDER\n"
    assert not home.exists()


def test_a_state_folder_without_a_config_is_not_set_up(tmp_path: Path) -> None:
    home = tmp_path / "fresh"
    home.mkdir(mode=0o700)
    ran = cli(home, "config", "set", "port", "4000")
    assert ran.returncode == 1 and ran.stderr.startswith("error: this computer is not set up yet"), ran.stderr
    assert not (home / "config.json").exists()


@pytest.mark.parametrize("wait", [pin_roots, undo_config_change], ids=["pin_roots", "undo_config_change"])
def test_the_event_loop_goes_on_while_another_holds_the_lock(
    home: Path, wait: Callable[[Path, str], Coroutine[Any, Any, object]]
) -> None:
    good(home, "config", "set", "machineName", "one")
    name = "app" if wait is pin_roots else records(home)[0].stem
    is_held, is_let_go, in_time = threading.Event(), threading.Event(), []

    def hold() -> None:
        with locked(home):
            is_held.set()
            in_time.append(is_let_go.wait(10))

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, home, name)
            await anyio.wait_all_tasks_blocked()
            is_let_go.set()

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(10)
    anyio.run(run)
    holder.join(10)
    assert in_time == [True], "the loop waited for the lock"
