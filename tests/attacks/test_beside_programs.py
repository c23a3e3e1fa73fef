"""A program of a folder on the search path shows a command nothing but the tool it belongs to."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.base import Computer
from computer_linker.providers.processes.prepare import Preparation
from computer_linker.providers.sandbox.boundary import Kind
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
CANARY = "CANARY-0c4f"


async def ran(tmp_path: Path, kind: Kind, tool: Path, scopes: list[dict[str, Any]]) -> dict[str, Any]:
    """`reader notes.txt`, a copy of `cat` in the tool's `bin`, on the file beside that folder."""
    (tool / "bin").mkdir(parents=True)
    shutil.copy("/bin/cat", tool / "bin" / "reader")
    (tool / "notes.txt").write_text(CANARY)
    async with Road.open(tmp_path, scopes) as road:
        services = road.app.services
        computer = services.use(Computer)
        sandbox = Sandbox(computer, services.home, (kind,), scopes=lambda: services.config.scopes)
        services.provide(Sandbox, sandbox)
        environ = {"PATH": f"{tool}/bin:/usr/bin:/bin"}
        services.provide(Preparation, Preparation(computer, sandbox, environ, scopes=lambda: services.config.scopes))
        command = ["reader", str(tool / "notes.txt")]
        return await road.call("command.run", ".", input={"command": command})


KINDS = pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])


@KINDS
@pytest.mark.parametrize("beside", [".git/HEAD", ".env", "work/a.txt", "home/config.json"])
async def test_a_folder_with_more_than_a_tool_is_not_shown(tmp_path: Path, kind: Kind, beside: str) -> None:
    tool = tmp_path if beside.startswith("home") else tmp_path / "project"
    place = tool / beside
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.write_text("{}")
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["reader *"])]
    if beside.startswith("work"):
        scopes.append(folder_scope(place.parent, "other"))
    answer = await ran(tmp_path, kind, tool, scopes)
    assert answer["ok"], answer
    assert answer["data"]["exitCode"] == 1 and CANARY not in answer["data"]["stdout"]


@KINDS
async def test_the_folder_of_a_tool_is_shown(tmp_path: Path, kind: Kind) -> None:
    scopes = [folder_scope(tmp_path / "root", allowedCommands=["reader *"])]
    answer = await ran(tmp_path, kind, tmp_path / "tool", scopes)
    assert answer["data"]["stdout"] == CANARY, answer
