"""The socket by which `sudo` in a sandbox asks the owner: no way into the state folder, and none to use up the service."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
FOLDER = "/run/computer-linker/elevation"
WRITES = f"""
import os
tried = (
    lambda: open("{FOLDER}/left", "w"), lambda: os.mkdir("{FOLDER}/left"), lambda: os.unlink("{FOLDER}/ask"),
    lambda: os.rename("{FOLDER}/ask", "{FOLDER}/other"), lambda: os.chmod("{FOLDER}/ask", 0o777),
    lambda: os.symlink("/etc", "{FOLDER}/left"), lambda: os.utime("{FOLDER}", (1, 1)),
)
for act in tried:
    try:
        act()
        print("DONE")
    except OSError as error:
        print(error.errno)
"""
FLOODS = f"""
import socket, time
held, refused = [], 0
while len(held) < 300 and refused < 100:
    one = socket.socket(socket.AF_UNIX)
    one.setblocking(False)
    try:
        one.connect("{FOLDER}/ask")
        held.append(one)
    except BlockingIOError:
        refused += 1
        time.sleep(0.01)
print("held", len(held), flush=True)
input()
"""
NESTED = f"""
import socket
asking = socket.socket(socket.AF_UNIX)
asking.connect("{FOLDER}/ask")
asking.sendall(b"[" * 100_000 + b"\\n")
print(asking.makefile().read())
"""


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    scope = folder_scope(tmp_path / "root", allowedCommands=["*"], elevation=True)
    async with Road.open(tmp_path, [scope]) as opened:
        yield opened


async def test_a_command_leaves_nothing_in_the_state_folder(road: Road) -> None:
    """Found: the socket's folder, which lies in the state folder, could be written, and was emptied in the event loop."""
    ran = await road.data("command.run", ".", input={"command": ["python3", "-c", WRITES]})
    assert ran["stdout"].split() and "DONE" not in ran["stdout"], ran
    assert not list((road.home / "elevation").iterdir())


async def test_a_command_holds_few_descriptors_of_the_service(road: Road) -> None:
    """Found: every connection was accepted, and one that asked nothing was held until the command ended."""
    before = len(os.listdir("/proc/self/fd"))
    process = (await road.data("command.start", ".", input={"command": ["python3", "-u", "-c", FLOODS]}))["processId"]
    await road.data("command.read", process, options={"waitFor": "held", "waitSeconds": 50})
    assert len(os.listdir("/proc/self/fd")) - before < 60
    other = await road.data("command.run", ".", input={"command": ["echo", "still here"]})
    assert other["stdout"] == "still here\n"
    await road.data("command.stop", process)


async def test_a_request_that_is_nested_too_deeply_is_answered(road: Road) -> None:
    ran = await road.data("command.run", ".", input={"command": ["python3", "-c", NESTED]})
    assert "cannot be read" in ran["stdout"], ran
