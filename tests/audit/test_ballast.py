"""A command fills the disk of the state folder: what makes room is still recorded, and nothing else runs (F6)."""

import subprocess
import sys
from pathlib import Path

CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.road import Road, folder_scope
from support.waiting import until

FILL = '''
import os
def fill(name, piece):
    with open(name, "ab", buffering=0) as file:
        try:
            while True:
                file.write(piece)
        except OSError:
            pass
for size in (65536, 4096, 1):
    fill("big", b"x" * size)
try:
    for number in range(10_000):
        fill(f"small{number}", b"y")
        if os.path.getsize(f"small{number}") == 0:
            break
except OSError:
    pass
'''

async def main():
    place = Path(sys.argv[2])
    async with Road.open(place, [folder_scope(place / "root", allowedCommands=["*"], sandbox="off")]) as road:
        ballast = road.home / "audit" / "ballast"
        (place / "root/spare").write_text("x")
        whole = ballast.stat()
        assert whole.st_blocks * 512 >= whole.st_size == 4 << 20
        await road.call("command.run", ".", input={"command": ["/usr/bin/python3", "-S", "-c", FILL]}, options={"undo": False})
        for number in range(200):
            ran = await road.call("command.run", ".", input={"command": ["touch", "ran"]}, options={"undo": False})
            if not ran["ok"]:
                break
            (place / "root/ran").unlink()
        assert ran["error"]["code"] == "execution_failed" and "history" in ran["error"]["message"], ran
        assert not (place / "root/ran").exists()
        assert ballast.stat().st_size == 4 << 20
        deleted = await road.call("file.delete", "spare")
        assert deleted["ok"], deleted
        assert not (place / "root/spare").exists() and ballast.stat().st_size < 4 << 20
        # What file.delete removes is kept for undo; a command makes room, which that delete's share of the ballast lets it.
        ran = await road.call("command.run", ".", input={"command": ["rm", "big"]}, options={"undo": False})
        assert ran["ok"] and not (place / "root/big").exists(), ran
        events = (await road.data("history.timeline"))["events"]
        assert [one["outcome"] for one in events if one["op"] == "file.delete"] == ["done"], events
        await until(lambda: ballast.stat().st_size == 4 << 20, seconds=40)
    print("held")

asyncio.run(main())
"""


def test_on_a_full_disk_a_delete_is_recorded_and_then_all_goes_on(tmp_path: Path) -> None:
    words = [sys.executable, "-c", CHILD, str(Path(__file__).parents[1]), str(tmp_path)]
    mount = 'mount -t tmpfs -o mode=700,size=60m tmpfs "$1" && shift && exec "$@"'
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", mount, "sh", str(tmp_path), *words], capture_output=True, text=True
    )
    assert done.stdout == "held\n", done.stderr[-3000:]
