"""A yes to a view is for the bytes that were shown: not for those that a program writes afterwards, however it does so."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.approvals.approvals import Approvals
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
MAPS = """
import mmap, sys
file = open("tool.sh", "w+b")
file.write(b"echo good")
file.flush()
mapped = mmap.mmap(file.fileno(), 0)
mapped[5:9] = b"good"
print("ready", flush=True)
sys.stdin.readline()
mapped[5:9] = b"EVIL"
"""


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    root.mkdir()
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"], outcome="ask")]) as made:
        yield made


async def _until(road: Road, process: str, wanted: str) -> None:
    """Wait until the process has printed this, or has this status."""
    with anyio.fail_after(60):
        while True:
            read = await road.data("command.read", process, options={"waitSeconds": 5})
            if wanted in (read["status"], "".join(chunk["text"] for chunk in read["chunks"]).strip()):
                return


async def _asked(road: Road, view: str) -> dict[str, Any]:
    envelope = await road.call("view.keep", view)
    error: dict[str, Any] = envelope["error"]
    return error


async def test_nobody_is_asked_while_a_program_runs_there(road: Road) -> None:
    begun = await road.data("command.start", ".", input={"command": [sys.executable, "-c", MAPS]})
    await _until(road, begun["processId"], "ready")
    error = await _asked(road, begun["viewId"])
    assert (error["code"], road.app.services.use(Approvals).waiting()) == ("conflict", [])
    await road.data("command.send", begun["processId"], input={"text": "\n"})
    await _until(road, begun["processId"], "exited")
    error = await _asked(road, begun["viewId"])
    (asked,) = road.app.services.use(Approvals).waiting()
    assert error["code"] == "confirm_required" and "+echo EVIL" in asked.text


async def test_a_program_that_runs_there_later_ends_the_yes(road: Road) -> None:
    made = await road.data("command.run", ".", input={"command": ["sh", "-c", "echo good > tool.sh"]})
    view = made["view"]["viewId"]
    await _asked(road, view)
    approvals = road.app.services.use(Approvals)
    (asked,) = approvals.waiting()
    approvals.answer(asked.id, "yes")
    # It changes nothing that the file's times tell of.
    assert (await road.call("command.run", ".", input={"command": ["true"]}, options={"view": view}))["ok"]
    error = await _asked(road, view)
    assert error["code"] == "conflict" and not (road.root / "tool.sh").exists()
