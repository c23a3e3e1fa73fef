"""Programs hide what they leave: in folders they close, or nest too deep for any path. It is counted and removed all the same."""

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.own_folders import _Walk, disk_use, remove_folder
from computer_linker.providers.sandbox import landlock
from computer_linker.providers.sandbox.boundary import Confinement
from computer_linker.providers.views.store import Views
from support.another_user import place_of_another, run_as_another
from support.road import Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio

CLOSED = "mkdir -p h/i; head -c 4000000 /dev/zero > h/i/big; chmod 0 h/i h"
DEEP = (
    "python3 -c \"import os\nfor _ in range(40): os.mkdir('x' * 200); os.chdir('x' * 200)\n"
    "open('big', 'wb').write(bytes(4000000))\""
)


async def stored(place: Path, script: str) -> dict[str, Any]:
    """How a view is refused after a program left four megabytes in another one, and what that one measures."""
    (place / "root").mkdir()
    async with Road.open(place, [folder_scope(place / "root", allowedCommands=["*"])]) as road:
        views = Views(road.home / "views", max_all_bytes=6 << 20)
        road.app.services.provide(Views, views)

        async def run(line: str) -> dict[str, Any]:
            return await road.call("command.run", ".", input={"command": ["sh", "-c", line]}, options={"view": True})

        first, second = await run(script), await run("echo x > x")
        view_id = first["data"]["view"]["viewId"]
        shown = await road.data("view.show", view_id)
        modes = {change["path"]: change["mode"] for change in shown["changes"]}
        dropped = await road.data("view.drop", view_id)
        return {
            "code": second.get("error", {}).get("code"),
            "modes": modes,
            "left": os.listdir(views.folder),
            **dropped,
        }


@pytest.mark.parametrize("script", [CLOSED, DEEP], ids=["closed", "deep"])
async def test_the_room_of_views_is_counted_where_it_is_hidden(tmp_path: Path, script: str) -> None:
    found = await stored(tmp_path, script)
    assert (found["code"], found["dropped"], found["left"]) == ("limit_exceeded", True, [])


@pytest.mark.parametrize("script", [CLOSED, DEEP], ids=["closed", "deep"])
async def test_and_for_an_ordinary_user(script: str) -> None:
    program = (
        "import json, sys; from pathlib import Path; import anyio\n"
        "from attacks.test_hidden_room import stored\n"
        "print(json.dumps(anyio.run(stored, Path(sys.argv[1]), sys.argv[2])))"
    )
    with place_of_another() as place:
        found = json.loads(run_as_another(program, place, script))
    assert (found["code"], found["dropped"], found["left"]) == ("limit_exceeded", True, [])
    # To be counted, a folder is opened for a moment; its mode is the program's again.
    assert script != CLOSED or found["modes"]["h"] == "0000"


def test_a_folder_that_a_program_moves_meanwhile_leads_nowhere_else(tmp_path: Path) -> None:
    """The walk goes up again by `..`; of a folder that was moved, that is another one, which is neither entered nor changed."""
    (tmp_path / "place" / "a" / "b").mkdir(parents=True)
    walk = _Walk(os.open(tmp_path / "place", os.O_RDONLY))
    walk._above.append((os.fstat(walk.here), [], None))
    walk._enter("a")
    walk._enter("b")
    (tmp_path / "place" / "a" / "b").rename(tmp_path / "b")
    walk._above.pop()
    assert not walk._leave(None)
    os.close(walk.here)


@pytest.mark.parametrize("depth", [250, 3000])
async def test_a_view_that_removes_a_deep_folder_says_that_it_is_too_deep(tmp_path: Path, depth: int) -> None:
    (tmp_path / "root").mkdir()
    here = os.open(tmp_path / "root", os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", allowedCommands=["*"])]) as road:
        given = {"command": ["rm", "-rf", "d"]}
        ran = await road.call("command.run", ".", input=given, options={"view": True, "timeoutSeconds": 100})
        said = str(ran.get("error") or ran["warnings"])
        assert "levels deep" in said and (tmp_path / "root" / "d").exists(), ran
    remove_folder(tmp_path / "root")


CLOSING = """
import os
place = os.environ['TMPDIR']
os.makedirs(place + '/shut/in')
os.chmod(place + '/shut', 0)
os.chmod(place, 0)
print(place)
"""
LEAVING = """
import sys; from pathlib import Path; import anyio
from attacks.test_decisions_reach_effects import python, road_under
from attacks.test_hidden_room import CLOSING

async def main():
    async with road_under(Path(sys.argv[1]), "landlock") as road:
        print((await road.data("command.run", ".", input=python(CLOSING)))["stdout"])

anyio.run(main)
"""


async def test_landlocks_temporary_folder_is_removed_also_when_it_was_closed() -> None:
    with place_of_another() as place:
        made = Path(run_as_another(LEAVING, place).strip())
    assert made.name.startswith("computer-linker-") and not made.exists()


async def test_it_is_removed_in_a_thread() -> None:
    """A program can leave a million files in it; removing them must not hold up other clients."""
    plan, private = landlock.wrap(("true",), Confinement(cwd="/"))
    place = Path(private["TMPDIR"])
    for number in range(20_000):
        (place / str(number)).touch()
    plan.release()
    assert place.exists()
    await until(lambda: not place.exists())


def test_a_folder_is_measured_as_the_system_does(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").write_bytes(bytes(100_000))
    (tmp_path / "a" / "b" / "link").symlink_to("/usr")
    expected = sum(path.lstat().st_blocks * 512 for path in tmp_path.rglob("*"))
    assert disk_use(tmp_path) == expected


def test_a_link_in_place_of_a_folder_is_not_followed_while_it_is_removed(tmp_path: Path) -> None:
    """A process that outlived its command exchanges folders for links to one of the owner's."""
    victim = tmp_path / "victim"
    (victim / "inner").mkdir(parents=True, mode=0o750)
    (victim / "inner/key").write_text("kept")
    (victim / "file").write_text("kept")
    before = {path: path.stat().st_mode for path in sorted(victim.rglob("*"))}
    for number in range(30):
        place = tmp_path / f"private-{number}"
        for name in range(60):
            (place / f"{name}/deeper").mkdir(parents=True)
        over = threading.Event()

        def exchange(place: Path = place, over: threading.Event = over) -> None:
            while not over.is_set():
                with contextlib.suppress(OSError), os.scandir(place) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            os.rename(entry.path, tmp_path / f"aside-{entry.name}")
                            os.symlink(victim, entry.path)

        racer = threading.Thread(target=exchange)
        racer.start()
        try:
            with contextlib.suppress(OSError):
                remove_folder(place)
        finally:
            over.set()
            racer.join()
        assert {path: path.stat().st_mode for path in sorted(victim.rglob("*"))} == before
    assert (victim / "inner/key").read_text() == "kept"
