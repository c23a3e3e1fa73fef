"""Killed while a view is kept: the folder has all of it or nothing, and nothing is left behind."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.views.store import MANY
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

FILES = 30

CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from computer_linker.providers.views.store import Views
from support.road import Road, folder_scope

SCRIPT = 'for n in $(seq 0 29); do echo "turn $1" > f$n; done; mkdir -p new; echo x > new/$1; rm gone/$1; ln -sfn f$1 link'

async def main():
    place = Path(sys.argv[2])
    async with Road.open(place, [folder_scope(place / "root", allowedCommands=["*"])]) as road:
        turn = int(sys.argv[3])
        road.app.services.use(Views).many = int(sys.argv[4])
        while True:
            turn += 1
            command = {"command": ["sh", "-c", SCRIPT, "sh", str(turn)]}
            ran = await road.data("command.run", ".", input=command, options={"view": True})
            print("keep", flush=True)
            await road.data("view.keep", ran["view"]["viewId"])

asyncio.run(main())
"""


Moment = float | int
"""Seconds after it began to keep, or the number of the file after which it is killed."""


def run_and_kill(place: Path, turn: int, keeps: int, moment: Moment, many: int) -> None:
    """Kill the child at a moment of the `keeps`th time that it keeps its view."""
    words = [sys.executable, "-c", CHILD, str(Path(__file__).parents[2]), str(place), str(turn), str(many)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stderr is not None
        for _ in range(keeps):
            assert child.stdout.readline() == b"keep\n", child.stderr.read().decode()[-2000:]
        if isinstance(moment, int):
            was = inode(place, moment)
            while inode(place, moment) == was and child.poll() is None:
                continue
        else:
            deadline = time.monotonic() + moment
            while time.monotonic() < deadline and child.poll() is None:
                continue
        child.send_signal(signal.SIGKILL)
        child.wait()


def inode(place: Path, number: int) -> int:
    """What identifies the present state of a file: it is replaced by a rename, or is between the two."""
    try:
        return (place / "root" / f"f{number}").stat().st_ino
    except FileNotFoundError:
        return 0


async def keeps(place: Path, moments: list[Moment]) -> None:
    root = place / "root"
    (root / "gone").mkdir(parents=True)
    for number in range(FILES):
        (root / f"f{number}").write_text("turn 0\n")
    for number in range(1, 4 * len(moments) + 2):
        (root / "gone" / str(number)).write_text("x\n")
    turn, outcomes = 0, []
    scopes: list[dict[str, Any]] = [folder_scope(root, allowedCommands=["*"])]
    for number, moment in enumerate(moments):
        began = turn
        # Half of them are kept as many files are, without a copy.
        run_and_kill(place, turn, 1 + number % 2, moment, MANY if number // 2 % 2 else 0)
        async with Road.open(place, scopes) as road:
            # The first change of files recovers what was interrupted.
            await road.data("file.write", "unrelated", input={"content": str(number)})
            states = {(root / f"f{each}").read_text() for each in range(FILES)}
            assert len(states) == 1, f"a view was kept in part, killed at {moment}"
            turn = int(states.pop().split()[1])
            made = sorted(int(path.name) for path in (root / "new").iterdir()) if (root / "new").exists() else []
            assert made == list(range(1, turn + 1))
            assert not any((root / "gone" / str(each)).exists() for each in range(1, turn + 1))
            assert (root / "gone" / str(turn + 1)).exists()
            assert [path.name for path in root.rglob(".~cl-*")] == []
            # Undecided views are still there, and can be dropped; nothing else is left of them.
            for view in (await road.data("view.list"))["views"]:
                await road.data("view.drop", view["viewId"])
            assert list((road.home / "views").iterdir()) == []
        outcomes.append(turn - began)
    print(f"turns kept before each death: {outcomes}")


def moments(count: int, seed: int = 23) -> list[Moment]:
    """Half of them chosen, after the change of one file each, half random."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    chosen: list[Moment] = [number * 7 % FILES for number in range(count // 2)]
    return [*chosen, *(chance.uniform(0.0, 0.08) for _ in range(count - len(chosen)))]


async def test_a_killed_keep_is_whole_or_absent(tmp_path: Path) -> None:
    await keeps(tmp_path, moments(6))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_killed_keep_is_whole_or_absent_however_often(tmp_path: Path) -> None:
    await keeps(tmp_path, moments(100))
