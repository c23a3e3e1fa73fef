"""Putting something back in a root that holds the state: no folder goes between the two, whatever a command does meanwhile."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from computer_linker.computer.facets.files import Remove, Restore
from computer_linker.computer.local.portable.files import LocalFiles
from computer_linker.errors import Conflict
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.undo.journal import Entry, UndoJournal

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="asks /proc where a folder lies")]


class Bench:
    """A root that holds the state, with two deleted names that a batch puts back."""

    def __init__(self, top: Path) -> None:
        self.root, self.home = top, top / "home"
        self.home.mkdir(mode=0o700)
        self.files = LocalFiles()
        self.files.opener.roots.protect(self.home)
        self.journal = UndoJournal(self.home / "undo")
        self.kept = self.home / "undo" / "kept"

    def at(self, name: str) -> RootedPath:
        return RootedPath(str(self.root), (name,), PathRules())

    def entry(self, number: int) -> Entry:
        return self.journal.begin(f"01ARZ3NDEKTSV4RRFFQ69G5FA{number}", "app", "local:tester", "file.delete")

    async def deleted(self, number: int, name: str) -> str:
        """Delete a name; under which name it is kept."""
        entry = self.entry(number)
        await self.files.change([Remove(self.at(name), recursive=True)], gate=_at_once, keeper=entry)
        (kept,) = entry._record.kept
        return kept

    async def rolled_back(self, act: Callable[[], None]) -> None:
        """Put x and y back where y is taken meanwhile; `act` once x is there again."""
        kept = [await self.deleted(number, name) for number, name in enumerate(("x", "y"))]
        changes = [Restore(self.at(name), one, None) for name, one in zip(("x", "y"), kept, strict=True)]
        batch = await self.files._prepared(changes, self.entry(9))
        try:
            batch.staged[0].commit()
            act()
            (self.root / "y").write_text("taken")
            with pytest.raises(Conflict):
                batch.staged[1].commit()
            batch.staged[0].undo()
        finally:
            batch.close()


async def _at_once() -> None:
    return None


async def test_who_entered_a_folder_that_is_taken_back_again_does_not_come_into_the_state(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (tmp_path / "x" / "in").mkdir(parents=True)
    (tmp_path / "x" / "note").write_text("mine")
    (tmp_path / "y").write_text("y")
    inside: list[int] = []
    await bench.rolled_back(lambda: inside.append(os.open(tmp_path / "x" / "in", os.O_RDONLY)))
    where = Path(os.readlink(f"/proc/self/fd/{inside[0]}"))
    assert not where.is_relative_to(bench.home), where
    assert not (tmp_path / "x").exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["home", "y"]
    assert [one for one in bench.kept.iterdir() if one.is_dir() and (one / "note").read_text() == "mine"]


async def test_a_folder_put_in_place_of_a_file_is_not_taken_into_the_state(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (tmp_path / "x").write_text("x")
    (tmp_path / "y").write_text("y")

    def swap() -> None:
        (tmp_path / "x").rename(tmp_path / "x2")
        (tmp_path / "x").mkdir()

    await bench.rolled_back(swap)
    assert not [one for one in bench.kept.iterdir() if one.is_dir()]
    assert sorted(one.read_text() for one in bench.kept.iterdir()) == ["x", "y"]


async def test_what_is_put_back_is_kept_no_longer(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (tmp_path / "x" / "in").mkdir(parents=True)
    (tmp_path / "x" / "note").write_text("mine")
    (tmp_path / "x" / "link").symlink_to("note")
    kept = await bench.deleted(0, "x")
    (done,) = await bench.files.change([Restore(bench.at("x"), kept, None)], gate=_at_once, keeper=bench.entry(1))
    assert done.is_confirmed and (tmp_path / "x" / "note").read_text() == "mine" and (tmp_path / "x" / "in").is_dir()
    assert (tmp_path / "x" / "link").readlink() == Path("note")
    assert not list(bench.kept.iterdir())
