"""A disk that is full while a view is kept: the folder stays as it was, and the view can be kept once there is room."""

import subprocess
import sys
from pathlib import Path

CHILD = """
import asyncio, errno, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.road import Road, folder_scope

def state(root):
    return {str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
            for path in sorted(root.rglob("*"))}

def fill(place, leave):
    # Everything but `leave` bytes.
    with (place / "ballast").open("ab") as file:
        try:
            while True:
                file.write(b"x" * 65536)
                file.flush()
        except OSError as error:
            assert error.errno == errno.ENOSPC
    with (place / "ballast").open("r+b") as file:
        file.truncate(max(0, (place / "ballast").stat().st_size - leave))

async def main():
    place = Path(sys.argv[2])
    root = place / "root"
    root.mkdir()
    for number in range(40):
        (root / f"f{number}").write_text("old\\n" * 2000)
    async with Road.open(place, [folder_scope(root, allowedCommands=["*"])]) as road:
        call = {"command": ["sh", "-c", "for n in $(seq 0 39); do seq 1 4000 > f$n; done; rm f7; mkdir new; seq 1 9000 > new/x"]}
        ran = await road.data("command.run", ".", input=call, options={"view": True, "undo": False})
        before, refused = state(root), 0
        for leave in (0, 20_000, 200_000, 400_000, 600_000):
            fill(place, leave)
            kept = await road.call("view.keep", ran["view"]["viewId"])
            (place / "ballast").unlink()
            if kept["ok"]:
                break
            refused += 1
            assert state(root) == before, leave
            assert not list(root.rglob(".~cl-*")), leave
            assert not list((road.home / "undo" / "kept").iterdir()), leave
        print("refused", refused, kept["ok"])
        if not kept["ok"]:
            kept = await road.call("view.keep", ran["view"]["viewId"])
        assert kept["ok"], kept
        assert not (root / "f7").exists() and (root / "new/x").exists()
        assert (root / "f0").read_text().endswith("4000\\n") and list((road.home / "views").iterdir()) == []

asyncio.run(main())
"""


def test_a_full_disk_keeps_nothing_in_part(tmp_path: Path) -> None:
    words = [sys.executable, "-c", CHILD, str(Path(__file__).parents[2]), str(tmp_path)]
    mount = 'mount -t tmpfs -o mode=700,size=12m tmpfs "$1" && shift && exec "$@"'
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", mount, "sh", str(tmp_path), *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[1]) >= 2, done.stdout
