"""Views where the kernel has no overlay for a folder: the folder is copied, and everything else is the same."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.views.probe import can_overlay
from computer_linker.providers.views.store import Views
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
SCRIPT = """
printf 'one\\n2\\n' > a.txt; rm gone.txt; mv old.txt new.txt; mkdir -p made/deep; echo hi > made/deep/f; ln -s a.txt link
chmod 755 sub/b.txt; rm -rf dir; mkdir dir; echo fresh > dir/new; touch -d 2001-01-01 untouched
"""


def fill(root: Path) -> None:
    for folder in ("sub", "dir"):
        (root / folder).mkdir(parents=True)
    for name, text in (("a.txt", "one\ntwo\n"), ("sub/b.txt", "b\n"), ("gone.txt", "gone\n"), ("dir/in", "x\n")):
        (root / name).write_text(text)
    (root / "old.txt").write_text("a long enough text to be recognised\n")
    (root / "untouched").write_text("same\n")
    (root / ".env").write_text("SECRET=1\n")


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    fill(root)
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"])]) as opened:
        opened.app.services.provide(Views, Views(opened.home / "views", probe=lambda _state, _roots: False))
        yield opened


async def run(road: Road, script: str, view: Any = True) -> dict[str, Any]:
    return await road.data("command.run", ".", input={"command": ["sh", "-c", script]}, options={"view": view})


def state(root: Path) -> dict[str, Any]:
    found = {}
    for path in sorted(root.rglob("*")):
        about = path.lstat()
        content: Any = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(root))] = (about.st_mode, None if path.is_dir() else about.st_mtime_ns, content)
    return found


async def test_the_program_sees_its_folder_and_the_folder_stays(road: Road) -> None:
    before = state(road.root)
    ran = await run(road, f"{SCRIPT} cat a.txt made/deep/f; ls; pwd; cat .env")
    assert (
        ran["stdout"].startswith("one\n2\nhi\n") and str(road.root) in ran["stdout"] and "SECRET" not in ran["stdout"]
    )
    assert "view: a copy of the folder" in ran["boundary"] and state(road.root) == before
    shown = await road.data("view.show", ran["view"]["viewId"])
    assert {(each["path"], each["action"]) for each in shown["changes"]} == {
        ("a.txt", "changed"), ("gone.txt", "removed"), ("new.txt", "renamed"), ("made", "added"), ("made/deep", "added"),
        ("made/deep/f", "added"), ("link", "added"), ("sub/b.txt", "changed"), ("dir/in", "removed"), ("dir/new", "added"),
        ("untouched", "changed"),
    }  # fmt: skip
    await road.data("view.drop", ran["view"]["viewId"])
    assert state(road.root) == before and [path.name for path in (road.home / "views").iterdir()] == []


async def test_kept_it_is_as_if_the_command_had_run_there(road: Road, tmp_path: Path) -> None:
    ran = await run(road, SCRIPT)
    await road.data("view.keep", ran["view"]["viewId"])
    bare = tmp_path / "bare"
    fill(bare)
    subprocess.run(["sh", "-c", SCRIPT], cwd=bare, check=True)
    kept, ran_bare = state(road.root), state(bare)
    assert {name: (mode, content) for name, (mode, _, content) in kept.items()} == {
        name: (mode, content) for name, (mode, _, content) in ran_bare.items()
    }
    assert kept["untouched"] == ran_bare["untouched"] and (road.root / ".env").read_text() == "SECRET=1\n"


async def test_what_changes_in_the_folder_meanwhile_is_not_the_programs_doing(road: Road) -> None:
    ran = await run(road, "echo new > made; printf 'one\\ntwo\\nthree\\n' > a.txt")
    (road.root / "gone.txt").unlink()
    (road.root / "fresh.txt").write_text("of the owner\n")
    (road.root / "untouched").write_text("of the owner\n")
    (road.root / "a.txt").write_text("0\none\ntwo\n")
    shown = await road.data("view.show", ran["view"]["viewId"])
    assert [each["path"] for each in shown["changes"]] == ["a.txt", "made"]
    assert (await road.call("view.keep", ran["view"]["viewId"]))["error"]["code"] == "conflict"
    await road.data("view.keep", ran["view"]["viewId"], input={"paths": ["made"]})
    assert (road.root / "fresh.txt").read_text() == (road.root / "untouched").read_text() == "of the owner\n"
    assert not (road.root / "gone.txt").exists() and (road.root / "made").exists()


CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.road import Road, folder_scope

async def main():
    place = Path(sys.argv[2])
    async with Road.open(place, [folder_scope(place / "root", allowedCommands=["*"])]) as road:
        call = {"command": ["sh", "-c", "rm -r sub; mkdir sub; echo 2 > a.txt"]}
        ran = await road.data("command.run", ".", input=call, options={"view": True})
        print(ran["boundary"])
        shown = await road.data("view.show", ran["view"]["viewId"])
        print(sorted(each["path"] for each in shown["changes"]))
        await road.data("view.keep", ran["view"]["viewId"])

asyncio.run(main())
"""


def test_a_state_folder_that_takes_no_overlay_is_found_out_by_trying(tmp_path: Path) -> None:
    fill(tmp_path / "root")
    (tmp_path / "home").mkdir()
    words = [sys.executable, "-c", CHILD, str(Path(__file__).parents[2]), str(tmp_path)]
    mount = 'mount -t ramfs -o mode=700 ramfs "$1" && shift && exec "$@"'
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", mount, "sh", str(tmp_path / "home"), *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "view: a copy of the folder" in done.stdout and "['a.txt', 'sub/b.txt']" in done.stdout
    assert (tmp_path / "root/a.txt").read_text() == "2\n" and os.listdir(tmp_path / "root/sub") == []


def test_an_ordinary_disk_takes_one(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "state").mkdir()
    assert can_overlay(tmp_path / "state", [str(tmp_path / "root")]) and os.listdir(tmp_path / "state") == []
