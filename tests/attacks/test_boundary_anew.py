"""A command that stays in a folder while the service takes it away must not come along into the state."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.providers.sandbox.boundary import Kind
from computer_linker.providers.sandbox.sandbox import Sandbox
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

UPWARDS = """
import os, sys, time
os.makedirs(sys.argv[1], exist_ok=True)
here = os.open(sys.argv[1], os.O_RDONLY)
print("there", flush=True)
end = time.monotonic() + 10
while os.path.lexists(sys.argv[2]) and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.3)
for _ in range(8):
    try:
        here = os.open("..", os.O_RDONLY, dir_fd=here)
        print("SAW", sorted(os.listdir(here)), flush=True)
    except OSError as error:
        print(error)
        break
"""


def around_the_state(tmp_path: Path) -> list[dict[str, Any]]:
    """A scope whose folder holds the state, as a whole home does."""
    (tmp_path / "free" / "d").mkdir(parents=True)
    return [folder_scope(tmp_path, allowedCommands=["*"], sandbox="auto")]


async def bounded_by(road: Road, kind: Kind) -> None:
    sandbox = road.app.services.use(Sandbox)
    found = await sandbox.probe()
    if found.kind != kind:
        pytest.skip(f"{kind} cannot be had here: {found.detail}")


async def test_who_stays_in_a_planted_folder_does_not_come_into_the_state_with_it(tmp_path: Path) -> None:
    async with Road.open(tmp_path, around_the_state(tmp_path)) as road:
        await bounded_by(road, "bubblewrap")
        argv = ["python3", "-c", UPWARDS, "free/.vscode/in", "free/.vscode"]
        told = await road.call("command.run", ".", input={"command": argv})
        assert "there" in told["data"]["stdout"] and told["operationId"] not in told["data"]["stdout"], told["data"][
            "stdout"
        ]
        assert not (tmp_path / "free" / ".vscode").exists()
        assert (road.home / "refused" / told["operationId"] / "1" / "free" / ".vscode" / "in").is_dir()


async def test_who_stays_in_a_deleted_folder_does_not_come_into_the_state_with_it(tmp_path: Path) -> None:
    async with Road.open(tmp_path, around_the_state(tmp_path)) as road:
        await bounded_by(road, "bubblewrap")
        (tmp_path / "free" / "d" / "note.txt").write_text("mine")
        (tmp_path / "free" / "d" / "link").symlink_to("note.txt")
        argv = ["python3", "-c", UPWARDS, "free/d/in", "free/d"]
        started = await road.call("command.start", ".", input={"command": argv})
        said = ""
        with anyio.fail_after(20):
            while "there" not in said:
                said = await read(road, started["data"]["processId"])
            deleted = await road.call("file.delete", "free/d", options={"recursive": True})
            assert deleted["data"]["entries"] == 4
            while "Errno" not in said and said.count("SAW") < 8:
                said = await read(road, started["data"]["processId"])
        assert "journal.jsonl" not in said and "kept" not in said, said
        assert not (tmp_path / "free" / "d").exists()
        await road.call("file.undo", input={"operationId": deleted["operationId"]})
        assert (tmp_path / "free" / "d" / "note.txt").read_text() == "mine"
        assert (tmp_path / "free" / "d" / "link").readlink() == Path("note.txt")


async def read(road: Road, process: str) -> str:
    told = await road.call("command.read", process, options={"cursor": 0, "waitSeconds": 1})
    return "".join(chunk["text"] for chunk in told["data"]["chunks"])
