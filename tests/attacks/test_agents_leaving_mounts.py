"""A command of Codex, which makes a sandbox of its own, does not leave the mounts that hold closed names."""

import platform
import sys
from pathlib import Path

import pytest

from support.agents_road import agent_road, command

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or sys.platform != "linux",
        reason="needs Linux on x86_64: the system call is made by its number",
    ),
]
CANARY = "CANARY-77d0"
LEAVE = """
import ctypes, os, tempfile
libc = ctypes.CDLL(None, use_errno=True)
folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
if libc.unshare(0x10000000 | 0x20000) == 0:
    libc.mount(None, b"/", None, 0x40000 | 0x4000, None)
    place = tempfile.mkdtemp(dir="/tmp").encode()
    libc.mount(b"none", place, b"tmpfs", 0, None)
    os.chdir(place)
    libc.syscall(155, b".", b".")
    libc.umount2(b".", 2)
    os.fchdir(folder)
for old, new in ((".env", "taken.txt"), (".git", "taken-git")):
    try:
        os.rename(old, new)
    except OSError as error:
        print(old, error.strerror)
open("ran.txt", "w").close()
"""


async def test_no_command_of_codex_renames_a_closed_name(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".env").write_text(CANARY)
    (root / "leave.py").write_text(LEAVE)
    steps = command("codex", "python3 leave.py"), {"say": "done"}
    async with agent_road(tmp_path, "codex", *steps, network=False) as (road, model):
        answer = await road.call("codex.run", ".", input={"prompt": "go"}, options={"sandbox": "workspace-write"})
        read = await road.call("file.read", "taken.txt")
    assert answer["ok"], answer
    assert (root / "ran.txt").exists(), model.said_to()[-2000:]
    assert read["error"]["code"] == "not_found"
    assert (root / ".env").read_text() == CANARY and (root / ".git" / "hooks").is_dir()
