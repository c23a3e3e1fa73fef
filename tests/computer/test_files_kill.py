"""Killed at any point: a file is old or new, a patch is whole or absent, nothing is left behind, undo still works."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.road import Road

pytestmark = pytest.mark.anyio

FILES = 30

CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.road import Road

async def main():
    async with Road.open(Path(sys.argv[2])) as road:
        turn = int(sys.argv[4])
        print("ready", flush=True)
        while True:
            turn += 1
            text = f"turn {turn}" + chr(10)
            if sys.argv[3] == "write":
                await road.data("file.write", "f", input={"content": text * 2000})
            else:
                old = f"turn {turn - 1}" + chr(10)
                diff = "".join(
                    f"--- f{n}{chr(10)}+++ f{n}{chr(10)}@@ -1 +1 @@{chr(10)}-{old}+{text}" for n in range(30)
                ) + f"--- /dev/null{chr(10)}+++ new/{turn}{chr(10)}@@ -0,0 +1 @@{chr(10)}+{text}"
                await road.data("file.patch", input={"diff": diff})

asyncio.run(main())
"""


def run_and_kill(tmp_path: Path, job: str, turn: int, after_s: float) -> None:
    words = [sys.executable, "-c", CHILD, str(Path(__file__).parents[1]), str(tmp_path), job, str(turn)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == b"ready", child.stderr and child.stderr.read().decode()[-2000:]
        deadline = time.monotonic() + after_s
        while time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.001)  # no wait for anything: the moment of death is what is varied
        assert child.poll() is None
        child.kill()
        child.wait()


async def leftovers(road: Road) -> list[str]:
    """What a killed writer left: nothing where files can be made without a name, elsewhere nothing that a client sees."""
    if hasattr(os, "O_TMPFILE"):
        return [path.name for path in road.root.rglob("*") if path.name.startswith(".~cl-")]
    return [name for name in await names_in(road, ".") if name.startswith(".~cl-")]


async def names_in(road: Road, folder: str) -> list[str]:
    """The names that a client sees there."""
    listing = await road.data("file.list", folder, options={"includeHidden": True})
    return [entry["name"] for entry in listing["entries"]]


async def writes(tmp_path: Path, rounds: int) -> None:
    (tmp_path / "root").mkdir()
    chance = random.Random(7)
    for _ in range(rounds):
        run_and_kill(tmp_path, "write", 0, chance.uniform(0.005, 0.15))
        path = tmp_path / "root" / "f"
        lines = path.read_text().splitlines() if path.exists() else []
        assert len(set(lines)) <= 1 and len(lines) in (0, 2000)
        async with Road.open(tmp_path) as road:
            assert await leftovers(road) == []


async def patches(tmp_path: Path, rounds: int) -> None:
    root = tmp_path / "root"
    root.mkdir()
    turn = 0
    for number in range(FILES):
        (root / f"f{number}").write_text("turn 0\n")
    chance = random.Random(11)
    for _ in range(rounds):
        run_and_kill(tmp_path, "patch", turn, chance.uniform(0.02, 0.25))
        async with Road.open(tmp_path) as road:
            assert await leftovers(road) == []
            states = {(root / f"f{number}").read_text() for number in range(FILES)}
            assert len(states) == 1, "a patch was applied in part"
            turn = int(states.pop().split()[1])
            made = sorted(int(name) for name in await names_in(road, "new")) if (root / "new").exists() else []
            assert made == list(range(1, turn + 1))


async def test_a_killed_write_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    await writes(tmp_path, 5)


async def test_a_killed_patch_is_whole_or_absent_after_the_next_start(tmp_path: Path) -> None:
    await patches(tmp_path, 8)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_killed_write_leaves_the_old_or_the_new_file_however_often(tmp_path: Path) -> None:
    await writes(tmp_path, 200)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_killed_patch_is_whole_or_absent_however_often(tmp_path: Path) -> None:
    await patches(tmp_path, 200)
