"""A closed file that is replaced from outside while a command runs, as editors save: it is closed again, and reported."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.road import Road, folder_scope
from support.waiting import until_awaited

pytestmark = pytest.mark.anyio
TRIES = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    name, mode = line.split()
    try:
        with open(name, mode) as file:
            print("OPEN", file.write("planted") if mode == "a" else file.read(), flush=True)
    except OSError as error:
        print("SHUT", error.errno, flush=True)
"""
CLOSED = {".env": "r", "deep/.env": "r", ".envrc": "a", ".mcp.json": "a", "denied.txt": "r"}


def saved(path: Path, text: str) -> None:
    """Replace a file as editors and git do."""
    fresh = path.with_name("saving.tmp")
    fresh.write_text(text)
    os.replace(fresh, path)


async def started(road: Road) -> str:
    process: str = (await road.data("command.start", ".", input={"command": ["python3", "-u", "-c", TRIES]}))[
        "processId"
    ]
    await road.data("command.read", process, options={"waitFor": "ready", "waitSeconds": 50})
    return process


async def tried(road: Road, process: str, name: str, mode: str) -> str:
    """What the command gets when it opens the name now."""
    asked = {"text": f"{name} {mode}\n"}
    options = {"waitFor": "OPEN|SHUT", "waitSeconds": 50}
    read = await road.data("command.send", process, input=asked, options=options)
    return str(read["output"])


async def warnings(road: Road, process: str) -> list[str]:
    found: list[str] = (await road.call("command.read", process))["warnings"]
    return found


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    for name in CLOSED:
        (root / name).write_text("old")
    scope = folder_scope(root, allowedCommands=["*"], deniedPaths=["denied.txt"])
    async with Road.open(tmp_path, [scope]) as opened:
        yield opened


@pytest.mark.parametrize("name", CLOSED)
async def test_a_closed_file_that_an_editor_replaces_is_closed_again(road: Road, name: str) -> None:
    """Found: the running command read the new `.env`, and appended to the new `.envrc`; nothing named it."""
    process = await started(road)
    assert "SHUT" in await tried(road, process, name, CLOSED[name])
    for text in ("new", "newer"):
        count = len(await warnings(road, process))
        saved(road.root / name, text)

        async def is_reported(before: int = count) -> bool:
            return len(await warnings(road, process)) > before

        await until_awaited(is_reported)
        told = (await warnings(road, process))[-1]
        assert told.startswith(f"{name} was replaced") and told.endswith("It is closed again."), told
        answer = await tried(road, process, name, CLOSED[name])
        assert "SHUT" in answer and (road.root / name).read_text() == text
    stopped = await road.call("command.stop", process)
    assert any(name in warning for warning in stopped["warnings"])


async def test_a_folder_that_is_replaced_is_closed_again(road: Road) -> None:
    (road.root / ".vscode").mkdir()
    (road.root / ".vscode/tasks.json").write_text("{}")
    process = await started(road)
    (road.root / "fresh").mkdir()
    (road.root / "fresh/tasks.json").write_text("{}")
    os.rename(road.root / ".vscode", road.root / "stale")
    os.rename(road.root / "fresh", road.root / ".vscode")

    async def is_reported() -> bool:
        return any("closed again" in each for each in await warnings(road, process))

    await until_awaited(is_reported)
    assert "SHUT" in await tried(road, process, ".vscode/tasks.json", "a")
    assert (road.root / ".vscode/tasks.json").read_text() == "{}"


async def test_a_closed_file_that_is_removed_is_reported_and_closed_when_it_is_back(road: Road) -> None:
    """A command that is quicker than the scan may have taken away what replaced it, so a removal is reported."""
    process = await started(road)
    (road.root / ".env").unlink()

    async def says(text: str) -> bool:
        return any(text in each for each in await warnings(road, process))

    await until_awaited(lambda: says(".env was removed from outside"))
    saved(road.root / ".env", "back")
    await until_awaited(lambda: says("closed again"))
    assert "SHUT" in await tried(road, process, ".env", "r")


async def test_nothing_is_reported_while_nothing_is_replaced(road: Road) -> None:
    process = await started(road)
    (road.root / "plain.txt").write_text("x")
    saved(road.root / "plain.txt", "y")
    (road.root / ".env").write_text("in place")
    assert "SHUT" in await tried(road, process, ".env", "r")
    ended = await road.call("command.stop", process)
    assert not ended["warnings"], ended
