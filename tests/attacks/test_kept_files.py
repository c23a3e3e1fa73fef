"""What undo keeps of a file stays what it was, whatever a running command does through a descriptor that it has open."""

from pathlib import Path
from typing import Any

import pytest

from support.road import Road

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
        started = await road.data("command.start", ".", input={"command": ["python3", "-c", REWRITES]})
        process = started["processId"]
        await road.data("command.read", process, options={"waitFor": "open", "waitSeconds": 50})
        done = await road.call(op, "owners.txt", **CHANGES[op])
        assert done["ok"], done
        typed: dict[str, Any] = {"input": {"text": "\n"}, "options": {"waitFor": "written", "waitSeconds": 50}}
        assert (await road.data("command.send", process, **typed))["matched"]
        await road.data("file.undo", input={"operationId": done["operationId"]})
        assert (road.root / "owners.txt").read_text() == "the owner's text"
        await road.data("command.stop", process)
