"""A folder that the owner mounts inside a root while a command runs: where mounts are shared, the command cannot take it away."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SCENE = """
import asyncio, os, subprocess, sys
from pathlib import Path
from support.road import Road, folder_scope

TRIES = '''
import os
print("ready", flush=True)
input()
for act in (lambda: os.rmdir("data/disk"), lambda: os.rename("data/disk", "elsewhere")):
    try:
        act()
        print("DONE")
    except OSError as error:
        print(error.strerror)
print("over", flush=True)
'''

async def main(place):
    async with Road.open(place, [folder_scope(place / "root", allowedCommands=["*"])]) as road:
        disk = road.root / "data/disk"
        disk.mkdir(parents=True)
        begun = await road.data("command.start", ".", input={"command": ["python3", "-u", "-c", TRIES]})
        await road.data("command.read", begun["processId"], options={"waitFor": "ready", "waitSeconds": 50})
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], check=True)
        (disk / "owners.txt").write_text("the owner's")
        options = {"waitFor": "over", "waitSeconds": 50}
        sent = await road.data("command.send", begun["processId"], input={"text": "\\n"}, options=options)
        print(sent["output"], (disk / "owners.txt").read_text() if disk.is_mount() else "the mount is gone")
        await road.data("command.stop", begun["processId"])
        subprocess.run(["umount", "-l", str(disk)], check=False)

place = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(place)], check=True)
subprocess.run(["mount", "--make-shared", str(place)], check=True)
asyncio.run(main(place))
"""


def test_a_running_command_cannot_take_a_shared_mount_away(tmp_path: Path) -> None:
    can = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if os.geteuid() != 0 or can.returncode != 0:
        pytest.skip("a mount namespace needs root and CAP_SYS_ADMIN")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), *filter(None, sys.path)))}
    ran = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", SCENE, str(tmp_path)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("Device or resource busy") == 2 and "DONE" not in ran.stdout, ran.stdout
    assert ran.stdout.endswith(" the owner's\n"), ran.stdout
