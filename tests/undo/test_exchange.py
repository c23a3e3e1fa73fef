"""Many files of one folder are restored by exchanging them: all or none, and what was there is stored."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.files import Mark, Restore
from computer_linker.errors import Conflict
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.undo.journal import Entry, UndoJournal
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio
NAMES = ("a", "b", "c", "d")


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    root.mkdir()
    for name in NAMES:
        (root / name).write_text(f"old {name}\n")
    async with Road.open(tmp_path, [folder_scope(root)]) as opened:
        yield opened


def planned(road: Road) -> tuple[list[Restore], Entry]:
    """New contents of all four, and of one that is not there yet."""
    journal = road.app.services.use(UndoJournal)
    found = []
    for name in (*NAMES, "new"):
        (journal.kept.path / f"kept-{name}").write_text(f"new {name}\n")
        path = road.root / name
        mark = None
        if path.exists():
            about = path.stat()
            mark = Mark(about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        found.append(Restore(RootedPath(str(road.root), (name,), PathRules()), f"kept-{name}", mark))
    return found, journal.begin("01ARZ3NDEKTSV4RRFFQ69G5FAV", "app", "local:test", "view.keep")


def contents(road: Road) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(road.root.iterdir())}


async def nothing() -> None:
    return None


async def test_they_are_put_in_place_and_what_was_there_is_stored(road: Road) -> None:
    changes, entry = planned(road)
    done = await road.app.services.use(Computer).files.change(changes, gate=nothing, keeper=entry)
    assert [(each.path.name, each.action) for each in done] == [*((n, "modified") for n in NAMES), ("new", "created")]
    assert all(each.is_confirmed for each in done)
    assert contents(road) == {name: f"new {name}\n" for name in sorted((*NAMES, "new"))}
    kept = road.app.services.use(UndoJournal).kept.path
    assert {name: (kept / f"kept-{name}").read_text() for name in NAMES} == {name: f"old {name}\n" for name in NAMES}


async def test_one_that_changes_at_the_last_moment_leaves_all_as_they_were(road: Road) -> None:
    changes, entry = planned(road)

    async def changed() -> None:
        (road.root / "c").write_text("of another program, longer\n")

    with pytest.raises(Conflict):
        await road.app.services.use(Computer).files.change(changes, gate=changed, keeper=entry)
    assert contents(road) == {**{name: f"old {name}\n" for name in NAMES}, "c": "of another program, longer\n"}


async def test_a_name_that_is_taken_at_the_last_moment_leaves_all_as_they_were(road: Road) -> None:
    changes, entry = planned(road)

    async def taken() -> None:
        (road.root / "new").write_text("of another program\n")

    with pytest.raises(Conflict):
        await road.app.services.use(Computer).files.change(changes, gate=taken, keeper=entry)
    assert contents(road) == {**{name: f"old {name}\n" for name in NAMES}, "new": "of another program\n"}


async def test_a_file_with_another_name_is_stored_as_a_copy(road: Road, tmp_path: Path) -> None:
    os.link(road.root / "b", tmp_path / "twin")
    changes, entry = planned(road)
    done = await road.app.services.use(Computer).files.change(changes, gate=nothing, keeper=entry)
    assert [each.path.name for each in done] == [*NAMES, "new"]
    assert contents(road)["b"] == "new b\n" and (tmp_path / "twin").read_text() == "old b\n"
    (tmp_path / "twin").write_text("changed\n")
    steps = road.app.services.use(UndoJournal).steps_of("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    (step,) = (each for each in steps if each["path"] == ["b"])
    assert (road.app.services.use(UndoJournal).kept.path / step["kept"]).read_text() == "old b\n"
