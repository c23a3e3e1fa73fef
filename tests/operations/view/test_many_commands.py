"""Real commands on a view: dropped, the folder is as before to the last bit; kept, it is as if the command had run in it."""

import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.views.store import MANY, Views
from support.outcomes import digest, outcome
from support.road import Road, folder_scope
from support.view_commands import COMMANDS, SHORT, fill

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def road(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Road]:
    place = tmp_path_factory.mktemp("many")
    (place / "template").mkdir()
    fill(place / "template")
    (place / "root").mkdir()
    scope = folder_scope(place / "root", allowedCommands=["*"], allowProtected=True)
    async with Road.open(place, [scope]) as opened:
        yield opened


def begin(root: Path) -> None:
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    subprocess.run(["cp", "-a", f"{root.parent}/template/.", root], check=True)


async def run(road: Road, command: str, *, view: bool) -> dict[str, Any]:
    options = {"view": view, "timeoutSeconds": 120, "undo": False}
    return await road.data("command.run", ".", input={"command": ["sh", "-c", command]}, options=options)


async def check(road: Road, command: str) -> None:
    root = road.root
    begin(root)
    before = digest(root)
    dropped = await run(road, command, view=True)
    assert digest(root) == before
    assert (await road.call("view.drop", dropped["view"]["viewId"]))["ok"] and digest(root) == before
    viewed = await run(road, command, view=True)
    since = time.time_ns() - 3_600_000_000_000
    # Every second one is kept as many files are, without a copy.
    road.app.services.use(Views).many = MANY if COMMANDS.index(command) % 2 else 0
    kept = await road.call("view.keep", viewed["view"]["viewId"])
    assert kept["ok"] and kept["data"]["refused"] == [], kept
    after = outcome(root, since)
    begin(root)
    bare = await run(road, command, view=False)
    assert bare["exitCode"] == viewed["exitCode"] == 0, (bare, viewed)
    assert after == outcome(root, since)
    assert list((road.home / "views").iterdir()) == []


@pytest.mark.parametrize("command", SHORT)
async def test_dropped_as_before_and_kept_as_a_bare_run(road: Road, command: str) -> None:
    await check(road, command)


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in SHORT])
async def test_so_are_the_others(road: Road, command: str) -> None:
    await check(road, command)


def test_there_are_two_hundred() -> None:
    assert len(set(COMMANDS)) == len(COMMANDS) >= 200
