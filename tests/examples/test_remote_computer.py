"""The example for another computer, as a program of its own against a service in another process, over loopback."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.far import Far, FarWindow, far_process
from support.road import computer_scope, folder_scope

EXAMPLE = Path(__file__).parents[2] / "examples" / "remote_computer.py"


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Far]:
    with far_process(tmp_path) as running:
        yield running


def run(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    return subprocess.run(
        [sys.executable, str(EXAMPLE), "--home", str(home), *words], env=env, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip


def test_a_program_pairs_types_and_reads(far: Far, tmp_path: Path) -> None:
    home, root = tmp_path / "agent", tmp_path / "far-root"
    root.mkdir()
    (root / "notes.txt").write_text("from afar\n")
    far.ask("scopes", scopes=[computer_scope(), folder_scope(root)])
    place = {"x": 100, "y": 100, "width": 400, "height": 300}
    window = FarWindow(far, far.ask("open", app="editor", title="Notes", bounds=place, colour=0x336699))
    paired = run(home, "pair", far.address, far.ask("invite", grants=["desk", "app"]))
    assert (paired.returncode, paired.stdout) == (0, "far\n"), paired.stderr
    typed = run(home, "type", "far", "Good morning")
    assert typed.stdout.splitlines() == ["Screenshot 1280 x 800", "typed: confirmed"], typed.stderr
    assert window.text == "Good morning"
    read = run(home, "read", "far", "app", "notes.txt")
    assert (read.returncode, read.stdout) == (0, "from afar\n"), read.stderr
    there = [event["op"] for event in far.ask("events")]
    assert "files.read_whole" in there, "that computer's own history has it"


def test_what_was_not_given_is_refused_there(far: Far, tmp_path: Path) -> None:
    home, root = tmp_path / "agent", tmp_path / "far-root"
    root.mkdir()
    (root / "notes.txt").write_text("secret\n")
    far.ask("scopes", scopes=[computer_scope(), folder_scope(root)])
    assert run(home, "pair", far.address, far.ask("invite", grants=["desk"])).returncode == 0
    refused = run(home, "read", "far", "app", "notes.txt")
    assert refused.returncode == 1 and "secret" not in refused.stdout, refused.stdout
    assert refused.stderr.startswith("path_out_of_scope:"), refused.stderr


def test_a_wrong_code_pairs_nothing(far: Far, tmp_path: Path) -> None:
    far.ask("invite", grants=[])
    refused = run(tmp_path / "agent", "pair", far.address, "ABCDEFGHJKMNPQRSTVWXYZ0123")
    assert refused.returncode == 1 and refused.stderr.startswith("permission_denied:"), refused.stderr
    assert run(tmp_path / "agent", "type", "far", "x").stderr.startswith("unknown_scope:")
