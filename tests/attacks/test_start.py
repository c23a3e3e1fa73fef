"""Ways to start the service with less guard than its config promises: each is refused before anything listens."""

import subprocess
from pathlib import Path

import pytest

from support.service import PROGRAM, environment, write_config


@pytest.mark.parametrize(
    ("case", "arguments", "mode"),
    [
        ("PEER-002", ["serve", "--host", "0.0.0.0", "--port", "0"], 0o600),  # what is refused
        ("PEER-002 by another spelling", ["serve", "--host", "::", "--port", "0"], 0o600),
        ("CFG-001", ["serve", "--port", "0"], 0o666),
        ("CFG-001 for the group", ["serve", "--port", "0"], 0o620),
        ("PEER-015", ["link://open?q=--config=/tmp/evil.json"], 0o600),
    ],
)
def test_a_start_that_would_open_too_much_is_refused(
    tmp_path: Path, case: str, arguments: list[str], mode: int
) -> None:
    home = tmp_path / "home"
    write_config(home, tmp_path / "root")
    (home / "config.json").chmod(mode)
    before = (home / "config.json").read_bytes()
    ended = subprocess.run(
        [*PROGRAM, *arguments], env=environment(home), capture_output=True, timeout=30, stdin=subprocess.DEVNULL
    )
    assert ended.returncode != 0, case
    assert b"serving" not in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert (home / "config.json").read_bytes() == before
