"""Secrets whose key is in a real keyring, on a bus of the test's own: nothing beside the sealed file opens it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.canary import CANARY, is_in
from support.commands import command
from support.forked import PROGRAM, environment

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("gnome-keyring-daemon", "dbus-run-session")),
    reason="not installed: gnome-keyring, dbus",
)
_OPEN = "printf pw | gnome-keyring-daemon --unlock --components=secrets >/dev/null"
_LOCKED = "gnome-keyring-daemon --start --components=secrets >/dev/null"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    pytest.importorskip("keyring", reason="not installed: keyring")
    (tmp_path / "app").mkdir()
    assert command(tmp_path / "home", "setup", tmp_path / "app").returncode == 0
    return tmp_path / "home"


def in_a_session(home: Path, opening: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """One command of the program in a session of its own, after `opening`; the keyring's files stay for the next one."""
    run = home.parent / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    kept = {name: value for name, value in environment(home).items() if name != "PYTHON_KEYRING_BACKEND"}
    env = {**kept, "XDG_DATA_HOME": str(home.parent / "data"), "XDG_RUNTIME_DIR": str(run)}
    script = f'{opening}; exec "$@"'
    argv = ["dbus-run-session", "--", "sh", "-c", script, "sh", *PROGRAM, *words]
    return subprocess.run(argv, env=env, input=stdin, capture_output=True, text=True, timeout=240, check=False)


def added(home: Path, opening: str) -> str:
    words = ("secret", "add", "token", "--for", "api.example.org", "--json")
    # The keyring's own password comes from a pipe, so that the secret's file is named.
    value = home.parent / "value"
    value.write_text(CANARY)
    done = in_a_session(home, opening, *words, "--value-file", str(value))
    value.unlink()
    assert done.returncode == 0, done.stderr
    place: str = json.loads(done.stdout)["keyIn"]
    return place


def test_the_key_is_in_the_keyring_and_another_process_of_the_session_reads_the_secret(home: Path) -> None:
    assert added(home, _OPEN) == "keyring"
    assert (home / "secrets.sealed").exists() and not (home / "secrets.key").exists()
    assert not any(is_in(path.read_bytes()) for path in home.rglob("*") if path.is_file())
    listed = in_a_session(home, _OPEN, "secret", "list", "--json")
    (one,) = json.loads(listed.stdout)["secrets"]
    assert (one["name"], json.loads(listed.stdout)["keyIn"]) == ("token", "keyring")


@pytest.mark.parametrize("opening", [_LOCKED, "true"])
def test_a_closed_or_missing_keyring_refuses_and_stores_nothing_anew(home: Path, opening: str) -> None:
    added(home, _OPEN)
    before = (home / "secrets.sealed").read_bytes()
    value = home.parent / "value"
    value.write_text(CANARY)
    for words in (
        ("secret", "list"),
        ("secret", "add", "more", "--for", "api.example.org", "--value-file", str(value)),
        ("secret", "remove", "token"),
    ):
        done = in_a_session(home, opening, *words)
        assert done.returncode != 0 and "keyring" in done.stderr and not is_in(done.stdout + done.stderr), done
    assert (home / "secrets.sealed").read_bytes() == before and not (home / "secrets.key").exists()
    again = in_a_session(home, _OPEN, "secret", "list", "--json")
    assert [each["name"] for each in json.loads(again.stdout)["secrets"]] == ["token"]


def test_where_the_keyring_would_ask_a_person_the_key_is_in_a_private_file(home: Path) -> None:
    assert added(home, _LOCKED) == "file"
    assert (home / "secrets.key").stat().st_mode & 0o777 == 0o600
    assert os.listdir(home).count("secrets.sealed") == 1
