"""Files never take the last of the disk that the history is on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_CHILD = """
import asyncio, json, os, sys
from pathlib import Path
from computer_linker.computer.facets.files import MakeFolder, Write
from computer_linker.computer.local.portable.files import LocalFiles
from computer_linker.errors import LimitExceeded
from computer_linker.model.paths import PathRules, RootedPath

async def open_gate(): pass

async def main(disk, size):
    root, state = Path(disk) / "root", Path(disk) / "home"
    root.mkdir(); state.mkdir()
    files = LocalFiles()
    files.protect(state)
    made, refused = 0, None
    while made < 3000 and refused is None:
        try:
            await files.change([Write(RootedPath(str(root), (f"f{made}",), PathRules()), b"x" * size)], gate=open_gate)
            made += 1
        except LimitExceeded as error:
            refused = error
    try:
        await files.change([MakeFolder(RootedPath(str(root), ("folder",), PathRules()))], gate=open_gate)
        folder = "made"
    except LimitExceeded:
        folder = "refused"
    (state / "record").write_bytes(b"y" * 1_000_000)
    print(json.dumps({"made": made, "there": len(list(root.glob("f[0-9]*"))), "refused": refused and refused.details, "folder": folder}))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def _on_a_small_disk(tmp_path: Path, options: str, size: int) -> dict[str, Any]:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o {options} small "$1" || exit 77; exec "$2" -c "$3" "$1" "$4"'
    run = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, "sh", str(disk), sys.executable, _CHILD, str(size)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    if run.returncode == 77 or "unshare failed" in run.stderr:
        pytest.skip("this machine does not let a test mount a disk of its own")
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_a_flood_of_bytes_stops_before_the_disk_is_full(tmp_path: Path) -> None:
    found = _on_a_small_disk(tmp_path, "size=24m", 100_000)
    assert found["refused"]["freeBytes"] > 16_000_000
    assert 50 < found["made"] == found["there"] < 120


def test_a_flood_of_files_stops_before_there_is_no_place_for_one(tmp_path: Path) -> None:
    found = _on_a_small_disk(tmp_path, "size=64m,nr_inodes=1000", 0)
    assert found["refused"]["freeFiles"] < 256
    assert 500 < found["made"] == found["there"] < 1000
    assert found["folder"] == "refused"
