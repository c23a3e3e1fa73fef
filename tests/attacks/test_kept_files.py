"""What undo keeps of a file stays what it was, whatever a running command does through a descriptor that it has open."""

from pathlib import Path
from typing import Any

import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
REWRITES = """
import os
fd = os.open("owners.txt", os.O_RDWR)
print("open", flush=True)
input()
os.ftruncate(fd, 0)
os.pwrite(fd, b"forged", 0)
print("written", flush=True)
input()
"""
SIGNS: dict[str, Any] = {"input": {"text": "\n"}, "options": {"waitFor": "written", "waitSeconds": 50}}
CHANGES: dict[str, dict[str, Any]] = {
    "file.write": {"input": {"content": "new"}},
    "file.delete": {},
    "file.patch": {"input": {"edits": [{"oldText": "owner", "newText": "x"}]}},
}


@pytest.mark.parametrize("op", CHANGES)
async def test_a_command_that_has_a_file_open_does_not_rewrite_what_undo_restores(tmp_path: Path, op: str) -> None:
    """Found: the kept file was a hard link, and undo restored what the command had written into it."""
    async with Road.open(tmp_path) as road:
        (road.root / "owners.txt").write_text("the owner's text")
        process = await _holding(road, "owners.txt")
        done = await road.call(op, "owners.txt", **CHANGES[op])
        assert done["ok"], done
        assert (await road.data("command.send", process, **SIGNS))["matched"]
        await road.data("file.undo", input={"operationId": done["operationId"]})
        assert (road.root / "owners.txt").read_text() == "the owner's text"
        await road.data("command.stop", process)


async def _holding(road: Road, name: str) -> str:
    """A running command that has the file open, and rewrites it when it gets a line."""
    code = REWRITES.replace("owners.txt", name)
    started = await road.data("command.start", ".", input={"command": ["python3", "-c", code]})
    process: str = started["processId"]
    await road.data("command.read", process, options={"waitFor": "open", "waitSeconds": 50})
    return process


async def test_a_command_does_not_rewrite_a_file_of_a_deleted_folder(tmp_path: Path) -> None:
    """Found: a deleted folder was kept by a rename, and undo restored what the command had written into its file."""
    async with Road.open(tmp_path) as road:
        (road.root / "folder/deep").mkdir(parents=True)
        owners = road.root / "folder/deep/owners.txt"
        owners.write_text("the owner's text")
        owners.chmod(0o640)
        (road.root / "folder/link").symlink_to("deep/owners.txt")
        process = await _holding(road, "folder/deep/owners.txt")
        done = await road.call("file.delete", "folder", options={"recursive": True})
        assert done["ok"] and not (road.root / "folder").exists(), done
        assert (await road.data("command.send", process, **SIGNS))["matched"]
        await road.data("command.stop", process)
        await road.data("file.undo", input={"operationId": done["operationId"]})
        assert owners.read_text() == "the owner's text" and owners.stat().st_mode & 0o777 == 0o640
        assert (road.root / "folder/link").read_text() == "the owner's text"
        assert [path.name for path in road.root.iterdir()] == ["folder"]


@pytest.mark.parametrize("change", ["view.keep", "file.undo"])
async def test_nor_what_an_exchange_of_many_files_stored(tmp_path: Path, change: str) -> None:
    """Found: files of one folder are exchanged with those of a kept view, so what undo restores was still open to a command."""
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"])]) as road:
        (road.root / "owners.txt").write_text("the owner's text")
        (road.root / "more.txt").write_text("more")
        line = {"command": ["sh", "-c", "echo changed > owners.txt; echo changed > more.txt"]}
        view = (await road.data("command.run", ".", input=line, options={"view": True}))["view"]["viewId"]
        if change == "file.undo":
            await road.data("view.keep", view)
        started = await road.data("command.start", ".", input={"command": ["python3", "-c", REWRITES]})
        process = started["processId"]
        await road.data("command.read", process, options={"waitFor": "open", "waitSeconds": 50})
        was = (road.root / "owners.txt").read_text()
        target = view if change == "view.keep" else None
        parts: dict[str, Any] = {} if change == "view.keep" else {"input": {"operationId": "last"}}
        done = await road.call(change, target, **parts)
        assert done["ok"] and done["warnings"] == [], done
        typed: dict[str, Any] = {"input": {"text": "\n"}, "options": {"waitFor": "written", "waitSeconds": 50}}
        assert (await road.data("command.send", process, **typed))["matched"]
        await road.data("file.undo", input={"operationId": done["operationId"]})
        assert (road.root / "owners.txt").read_text() == was and "forged" not in was
        await road.data("command.stop", process)
