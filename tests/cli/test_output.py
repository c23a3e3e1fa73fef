"""How commands speak."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from computer_linker.cli.output import fail
from support.on_terminal import on_terminal
from support.service import PROGRAM, end_service, environment, write_config


def test_an_error_worded_elsewhere_does_not_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    fail("laptop says \x1b[2J\x9b1A\u202eno\nway", "Zoë's\thint\x07")
    assert capsys.readouterr().err == "error: laptop says \\x1b[2J\\x9b1A\\u202eno way\nhint: Zoë's hint\\x07\n"


def test_a_result_is_rows_and_tables_on_a_terminal_and_json_in_a_pipe(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    write_config(home, root)
    (root / "one.txt").write_text("1")
    (root / "esc\x1b[2J.txt").write_text("2")
    words = ["op", "file.list", "."]
    try:
        screen = on_terminal(home, words, 110, NO_COLOR="1")
        lines = [line.split() for line in re.sub(r"\x1b\[[0-9;]*m", "", screen).split("\r\n")]
        assert ["truncated", "no"] in lines and ["entries"] in lines
        assert ["name", "path", "type", "size", "modifiedAt"] in lines
        assert [line[:4] for line in lines if "one.txt" in line] == [["one.txt", "one.txt", "file", "1"]]
        assert "\x1b[2J" not in screen and "\\x1b[2J.txt" in screen
        program = [sys.executable, "-m", "computer_linker", *words]
        for flags, field in (([], "entries"), (["--json"], "data")):
            done = subprocess.run(
                [*program, *flags], env=environment(home), capture_output=True, text=True, timeout=240, check=True
            )
            assert field in json.loads(done.stdout)
        narrow = on_terminal(home, words, 40, NO_COLOR="1")
        assert "one.txt" in narrow
    finally:
        end_service(home)


def test_no_other_package_gets_at_the_models(tmp_path: Path) -> None:
    """A plugin of pydantic is code that every validation passes through; one is installed here, and is not loaded."""
    write_config(tmp_path / "home", tmp_path / "root")
    folder = tmp_path / "site"
    facts = folder / "observer-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: observer\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[pydantic]\nobserver = observer:plugin\n")
    (folder / "observer.py").write_text(f"open({str(tmp_path / 'loaded')!r}, 'w').close()\nplugin = None\n")
    env = environment(tmp_path / "home", PYTHONPATH=str(folder))
    done = subprocess.run(
        [*PROGRAM, "scope", "list"], env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "loaded").exists()
