"""A command that fills the disk of the state folder is ended, and no other; the service goes on."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
FILLS = """
import itertools, os
for number in itertools.count():
    try:
        with open(f"big-{number % 4}", "ab") as file:
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
    except OSError:
        pass
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a tmpfs needs root and CAP_SYS_ADMIN")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


async def test_the_command_that_fills_the_disk_is_ended_and_no_other(disk: Path) -> None:
    """Found: it went on until its time was over, and meanwhile nothing of any client could be recorded."""
    async with Road.open(disk, [folder_scope(disk / "root", allowedCommands=["*"])]) as road:
        other = await road.data("command.start", ".", input={"command": ["cat"]})
        filling: dict[str, Any] = {"input": {"command": ["python3", "-c", FILLS]}, "options": {"timeoutSeconds": 100}}
        ran = await road.call("command.run", ".", **filling)
        if ran["ok"]:
            assert not ran["data"]["timedOut"] and ran["data"]["signal"] == "SIGKILL", ran
            assert any("filled the disk" in each for each in ran["warnings"]), ran
        else:
            # It was quicker than the look, and its outcome could not be recorded.
            assert ran["error"]["code"] in ("limit_exceeded", "provider_unavailable", "execution_failed"), ran
        for path in road.root.glob("big-*"):
            path.unlink()
        sent = await road.data(
            "command.send",
            other["processId"],
            input={"text": "still here\n"},
            options={"waitFor": "still here", "waitSeconds": 50},
        )
        assert sent["matched"] and sent["status"] == "running"
        await road.data("command.stop", other["processId"])


async def test_a_command_that_only_prints_is_not_ended_on_a_full_disk(disk: Path) -> None:
    """Found: what a command prints counts as written, so that one after another was ended while little was free."""
    prints = "import time\nfor _ in range(40):\n    print('x' * 300_000, flush=True)\n    time.sleep(0.03)"
    async with Road.open(disk, [folder_scope(disk / "root", allowedCommands=["*"])]) as road:
        with (road.root / "ballast").open("wb") as file:
            file.write(bytes(shutil.disk_usage(disk).free - (9 << 20)))
        ran = await road.call("command.run", ".", input={"command": ["python3", "-c", prints]})
        assert ran["ok"] and ran["data"]["exitCode"] == 0 and ran["warnings"] == [], ran


RESERVES = """
import os
for number in range(1000):
    fd = os.open(f"reserved-{number}", os.O_CREAT | os.O_RDWR)
    try:
        os.posix_fallocate(fd, 0, 1 << 20)
    except OSError:
        pass
    os.close(fd)
"""
WRITES = """
import time
with open("log", "w") as file:
    while True:
        file.seek(0)
        file.write("x" * 400_000)
        file.flush()
        time.sleep(0.05)
"""


@pytest.fixture
def real_disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk, on which the kernel counts what each process writes."""
    place, image = tmp_path / "disk", tmp_path / "image"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(300 << 20)
    for line in (["mkfs.ext4", "-q", "-m", "0", str(image)], ["mount", "-o", "loop", str(image), str(place)]):
        if shutil.which(line[0]) is None or subprocess.run(line, capture_output=True, check=False).returncode != 0:
            pytest.skip("mounting an image needs root, loop devices and mkfs.ext4")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


async def test_space_that_is_only_reserved_is_nobody_elses_fault(real_disk: Path) -> None:
    """Found: the kernel does not count reserved space as written, so another command was ended for it."""
    async with Road.open(real_disk, [folder_scope(real_disk / "root", allowedCommands=["*"])]) as road:
        other = await road.data("command.start", ".", input={"command": ["python3", "-c", WRITES]})
        ran = await road.call("command.run", ".", input={"command": ["python3", "-c", RESERVES]})
        assert ran["ok"], ran
        assert ran["data"]["signal"] == "SIGKILL", ran
        assert any("filled the disk" in each for each in ran["warnings"]), ran
        state = await road.data("command.read", other["processId"])
        assert state["status"] == "running", state
        await road.data("command.stop", other["processId"])
