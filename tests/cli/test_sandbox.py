"""`computer-linker sandbox check` proves the boundary by trying to cross it."""

import json
import subprocess
from pathlib import Path

from support.service import PROGRAM, environment


def check(home: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "sandbox", "check", *words],
        env=environment(home, **env),
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_the_boundary_is_told_and_the_answer_stays_the_same(tmp_path: Path) -> None:
    first, second = check(tmp_path / "home", "--json"), check(tmp_path / "home", "--json")
    told = json.loads(first.stdout)
    assert told == json.loads(second.stdout)
    assert {entry["kind"] for entry in told["boundaries"]} == {"bubblewrap", "landlock"}
    assert first.returncode == (1 if told["used"] == "none" else 0)
    assert told["used"] in check(tmp_path / "home").stdout


def test_a_machine_without_bubblewrap_is_told_so(tmp_path: Path) -> None:
    told = json.loads(check(tmp_path / "home", "--json", PATH=str(tmp_path)).stdout)
    assert told["boundaries"][0]["holds"] is False and "not installed" in told["boundaries"][0]["detail"]
    assert told["used"] != "bubblewrap"
