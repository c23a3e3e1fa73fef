"""A view that no program can reach any more is kept without a copy: its own files become the folder's."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.views.store import MANY, Views
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio
MAKE = (
    "import os\n"
    f"for number in range({MANY}):\n"
    "    open(f'd{number % 10}/f{number}', 'w').write(f'new {number}\\n')\n"
    "os.makedirs('new/deep')\n"
    "open('new/deep/file', 'w').write('x')\n"
    "os.chmod('d1/f1', 0o755)\n"
    "os.setxattr('d2/f2', 'user.mine', b'1')\n"
    "os.unlink('d3/gone')\n"
    "os.link('d4/f4', 'd4/other')\n"
)


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    for number in range(MANY):
        (root / f"d{number % 10}").mkdir(parents=True, exist_ok=True)
        # Every third one is new in the view.
        if number % 3:
            (root / f"d{number % 10}" / f"f{number}").write_text(f"old {number}\n")
    (root / "d3" / "gone").write_text("gone\n")
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"])]) as opened:
        yield opened


async def viewed(road: Road, script: str = MAKE) -> str:
    ran = await road.data(
        "command.run", ".", input={"command": ["python3", "-c", script]}, options={"view": True, "timeoutSeconds": 60}
    )
    assert ran["exitCode"] == 0, ran
    view_id: str = ran["view"]["viewId"]
    return view_id


def files(place: Path) -> dict[str, Any]:
    """The files with all that a program could set."""
    found = {}
    for path in sorted(place.rglob("*")):
        about = path.lstat()
        facts = (about.st_mode, about.st_nlink, about.st_mtime_ns)
        found[str(path.relative_to(place))] = (
            (*facts, path.read_bytes(), os.listxattr(path)) if path.is_file() else None
        )
    return found


def inodes(place: Path) -> dict[str, int]:
    return {str(path.relative_to(place)): path.stat().st_ino for path in place.rglob("*") if path.is_file()}


async def test_the_files_of_the_view_become_those_of_the_folder(road: Road) -> None:
    before = files(road.root)
    view_id = await viewed(road)
    upper = inodes(road.home / "views" / view_id / "0" / "upper")
    kept = await road.data("view.keep", view_id)
    assert kept["left"] == 0 and list((road.home / "views").iterdir()) == []
    now = inodes(road.root)
    # All but the file with two names in the view, which is copied once.
    assert {name for name, inode in upper.items() if now[name] != inode} == {"d4/f4", "d4/other"}
    after = files(road.root)
    assert after["d1/f1"][0] & 0o777 == 0o755 and after["d2/f2"][4] == ["user.mine"] and "d3/gone" not in after
    assert all(found[4] == [] for name, found in after.items() if found is not None and name != "d2/f2")
    assert {name for name, found in after.items() if found is not None and found[1] != 1} == {"d4/f4", "d4/other"}
    await road.data("file.undo", input={"operationId": "last"})
    assert files(road.root) == before


async def test_a_view_made_right_after_has_no_conflict_with_what_was_kept(road: Road) -> None:
    """The second name of a kept file goes before the answer: removing it later would change the file's change time."""
    await road.data("view.keep", await viewed(road))
    again = await viewed(road, "for number in range(100): open(f'd{number % 10}/f{number}', 'w').write('again')")
    shown = await road.data("view.show", again)
    assert shown["conflicts"] == [] and shown["merged"] == []
    assert (await road.data("view.keep", again))["kept"] == 100


async def test_a_refused_keep_leaves_the_view_as_it_was(road: Road) -> None:
    view_id = await viewed(road)
    (road.root / "d1" / "f1").write_text("the owner's\n")
    before = files(road.root)
    assert await road.code("view.keep", view_id) == "conflict"
    assert files(road.root) == before
    more = {"command": ["sh", "-c", "echo more > more"]}
    await road.data("command.run", ".", input=more, options={"view": view_id})
    assert files(road.root) == before
    paths = [each["path"] for each in (await road.data("view.show", view_id))["changes"]]
    assert len(paths) > MANY and "more" in paths


async def test_a_part_is_copied_so_that_the_rest_stays_a_view(road: Road) -> None:
    view_id = await viewed(road)
    upper = inodes(road.home / "views" / view_id / "0" / "upper")
    await road.data("view.keep", view_id, input={"paths": ["d1", "d2"]})
    now = inodes(road.root)
    assert not any(now.get(name) == inode for name, inode in upper.items())


async def test_no_program_runs_in_a_view_whose_keep_was_interrupted(road: Road) -> None:
    view_id = await viewed(road)
    views = road.app.services.use(Views)
    (view,) = views.listed("app", LOCAL)
    # What a kill between the seal and the end leaves.
    assert views.seal(view)
    echo = {"command": ["sh", "-c", "echo evil > d1/f1"]}
    assert await road.code("command.run", ".", input=echo, options={"view": view_id}) == "conflict"
    assert (await road.data("view.keep", view_id))["left"] == 0
    assert (road.root / "d1" / "f1").read_text() == "new 1\n"
