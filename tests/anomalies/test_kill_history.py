"""Killed again and again under load, the service loses nothing it acknowledged and does nothing it did not announce."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from computer_linker.audit.store import AuditStore
from computer_linker.audit.views import answer
from support.road import Road

pytestmark = pytest.mark.anyio

LOAD = Path(__file__).with_name("history_load.py")


def kill_under_load(place: Path, run: int, dice: random.Random) -> list[list[str]]:
    """Start the load, kill it at a random moment; what it acknowledged, as [operation id, operation, target]."""
    child = subprocess.Popen([sys.executable, str(LOAD), str(place), str(run)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"ready\n"
        timer = time.monotonic() + dice.uniform(0.02, 0.4)
        told = b""
        os.set_blocking(child.stdout.fileno(), False)
        while time.monotonic() < timer:
            told += child.stdout.read(1 << 16) or b""
    finally:
        child.kill()
        child.wait(timeout=20)
    os.set_blocking(child.stdout.fileno(), True)
    told += child.stdout.read()
    child.stdout.close()
    # The last line may have been cut by the kill itself: then nobody was told.
    return [line.decode().split() for line in told.split(b"\n")[:-1]]


async def whole_history(store: AuditStore) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    cursor = None
    while True:
        page = await answer(store, view="timeline", visible=None, limit=500, cursor=cursor)
        found.update((event["operationId"], event) for event in page["events"])
        cursor = page["nextCursor"]
        if cursor is None:
            return found


@pytest.mark.parametrize("kills", [8, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
async def test_kills_lose_nothing_acknowledged_and_hide_no_effect(tmp_path: Path, kills: int) -> None:
    dice = random.Random(20261116)
    acknowledged: list[list[str]] = []
    for run in range(kills):
        acknowledged += kill_under_load(tmp_path, run, dice)
    started = time.monotonic()
    async with Road.open(tmp_path) as road:
        assert (await road.call("file.list", "."))["ok"]
        ready_s = time.monotonic() - started
        store = road.app.services.use(AuditStore)
        verified = await answer(store, view="verify", visible=None)
        history = await whole_history(store)
    assert acknowledged
    assert verified["valid"], verified
    for operation_id, op, target in acknowledged:
        event = history[operation_id]
        assert (event["op"], event["target"], event["outcome"]) == (op, target, "done")
    intended = {event["target"] for event in history.values() if event["op"] == "file.write"}
    effects = {path.name for path in (tmp_path / "root").iterdir() if not path.name.startswith(".")}
    assert effects <= intended
    assert {event["outcome"] for event in history.values()} <= {"done", "unknown"}
    assert ready_s <= 60, "it comes up again; how quickly is for the benchmark"
