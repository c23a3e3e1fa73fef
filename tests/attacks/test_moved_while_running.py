"""A folder with closed names that the service moves while a program runs there is not opened to that program."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

CANARY = "CANARY-91ab"
LOOK = """
import os, sys
print("there", flush=True)
for place in sys.stdin:
    for name in ("in", "here", "other/in"):
        try:
            print("READ", open(f"{name}/.env").read())
        except OSError:
            pass
        try:
            open(f"{name}/.git/planted", "w")
            print("PLANTED")
        except OSError:
            pass
    print("looked", flush=True)
"""


@pytest.fixture(params=[False, True], ids=["apart", "around"])
async def road(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Road]:
    """A service whose scope lies beside its state, or around it."""
    top = tmp_path / "root"
    for folder in ("sub/in/.git", "sub/plain", "other"):
        (top / folder).mkdir(parents=True)
    (top / "sub" / "in" / ".env").write_text(CANARY)
    (top / "other" / ".env").write_text(CANARY)
    scopes = [folder_scope(top, allowedCommands=["*"])]
    scopes += [folder_scope(tmp_path, "around")] if request.param else []
    async with Road.open(tmp_path, scopes) as opened:
        found = await opened.app.services.use(Sandbox).probe()
        if found.kind != "bubblewrap":
            pytest.skip(f"bubblewrap cannot be had here: {found.detail}")
        if request.param:
            await opened.data("file.list", ".", scope="around")
        yield opened


async def looked(road: Road, process: str) -> str:
    """What the program finds now."""
    await road.data("command.send", process, input={"text": "x\n"})
    read = await road.data("command.read", process, options={"waitFor": "looked", "waitSeconds": 20})
    return "".join(chunk["text"] for chunk in read["chunks"])


async def test_a_folder_with_closed_names_goes_to_no_folder_where_a_program_runs(road: Road) -> None:
    argv = ["python3", "-u", "-c", LOOK]
    process = (await road.data("command.start", ".", input={"command": argv}))["processId"]
    moves: list[tuple[str, str, Any]] = [
        ("sub/in", "in", "conflict"), ("sub/in", "other/in", "conflict"), ("sub/plain", "plain", None), ("sub", "here", None),
    ]  # fmt: skip
    for source, destination, code in moves:
        moved = await road.call("file.move", source, input={"destination": destination})
        assert (None if moved["ok"] else moved["error"]["code"]) == code, moved
    found = await looked(road, process)
    assert "READ" not in found and "PLANTED" not in found, found
    await road.data("command.stop", process)
    with anyio.fail_after(20):
        while not (await road.call("file.move", "here/in", input={"destination": "in"}))["ok"]:
            await road.data("file.list", ".")
    assert (road.root / "in" / ".env").read_text() == CANARY


async def test_a_folder_with_closed_names_is_not_put_back_where_a_program_runs(road: Road) -> None:
    (road.root / "sub" / "in" / ".git").rmdir()
    await road.data("file.move", "sub/in", input={"destination": "in"})
    argv = ["python3", "-u", "-c", LOOK]
    process = (await road.data("command.start", ".", input={"command": argv}))["processId"]
    deleted = await road.call("file.delete", "in", options={"recursive": True})
    undo: dict[str, Any] = {"input": {"operationId": deleted["operationId"]}}
    assert await road.code("file.undo", **undo) == "conflict"
    assert "READ" not in await looked(road, process)
    await road.data("command.stop", process)
    with anyio.fail_after(20):
        while not (await road.call("file.undo", **undo))["ok"]:
            await road.data("file.list", ".")
    assert (road.root / "in" / ".env").read_text() == CANARY
