"""The journal after a crash: a batch that died after any number of its changes is taken back whole at the next start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from computer_linker.undo.journal import UndoJournal
from support.road import LOCAL, Road

pytestmark = pytest.mark.anyio

CHILD = """
import asyncio, os, sys
from pathlib import Path
from computer_linker.computer.facets.files import Copy, MakeFolder, Move, Remove, Write
from computer_linker.computer.local.portable.files import LocalFiles
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.undo.journal import UndoJournal

root, home, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
at = lambda text: RootedPath(root, tuple(text.split("/")), PathRules())

async def main():
    files = LocalFiles()
    journal = UndoJournal(home / "undo")
    entry = journal.begin("01ARZ3NDEKTSV4RRFFQ69G5FAV", "app", "local:tester", "file.patch")
    batch = await files._prepared([
        Write(at("a"), b"new a"), Write(at("n/e/w"), b"fresh", must_be_new=True, create_parents=True),
        Remove(at("b")), Move(at("c"), at("moved")), Remove(at("d"), recursive=True), MakeFolder(at("made")),
        Copy(at("e"), at("copied")), Write(at("empty"), b""),
    ], entry)
    entry.begun(batch.steps, batch.leftovers)
    for staged in batch.staged[:count]:
        staged.commit()
    os._exit(9)

asyncio.run(main())
"""


def furnish(root: Path) -> None:
    for name in ("a", "b", "c", "empty"):
        (root / name).write_text(f"old {name}")
    for name in ("d", "e"):
        (root / name / "sub").mkdir(parents=True)
        (root / name / "sub" / "f").write_text(f"in {name}")


def picture(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else "folder"
        for path in sorted(root.rglob("*"))
    }


@pytest.mark.parametrize("count", range(9))
async def test_a_batch_that_died_after_some_changes_is_taken_back(tmp_path: Path, count: int) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir(mode=0o700)
    furnish(root)
    before = picture(root)
    died = subprocess.run([sys.executable, "-c", CHILD, str(root), str(home), str(count)], check=False)
    assert died.returncode == 9
    assert count == 0 or picture(root) != before
    async with Road.open(tmp_path) as road:
        assert picture(root) == before
        journal = road.app.services.use(UndoJournal)
        assert journal.unfinished() == [] and os.listdir(home / "undo" / "kept") == []
        await road.data("file.write", "a", input={"content": "after"})


async def test_a_change_by_somebody_else_after_the_crash_is_left_alone(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir(mode=0o700)
    furnish(root)
    subprocess.run([sys.executable, "-c", CHILD, str(root), str(home), "8"], check=False)
    (root / "a").write_text("by hand")
    async with Road.open(tmp_path):
        assert (root / "a").read_text() == "by hand"
        assert (root / "b").read_text() == "old b"


def test_a_line_cut_short_by_a_crash_is_left_out(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path / "undo")
    journal.begin("one", "app", "local:tester").commit([{"do": "rmdir", "root": "/r", "path": ["x"]}])
    path = tmp_path / "undo" / "journal.jsonl"
    with path.open("ab") as file:
        file.write(b'{"id":"two","scope":"app","op":"","steps":[{"do"')
    again = UndoJournal(tmp_path / "undo")
    assert again.find("one", "app", LOCAL).steps == [{"do": "rmdir", "root": "/r", "path": ["x"]}]
    assert again.unfinished() == []
    again.begin("three", "app", "local:tester").commit([{"do": "rmdir", "root": "/r", "path": ["y"]}])
    assert UndoJournal(tmp_path / "undo").find("three", "app", LOCAL).scope_id == "app"


def test_the_journal_file_stays_short(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path / "undo", max_entries=10)
    for number in range(9000):
        journal.begin(f"op{number}", "app", "local:tester").commit(
            [{"do": "rmdir", "root": "/r", "path": [str(number)]}]
        )
    path = tmp_path / "undo" / "journal.jsonl"
    assert path.stat().st_size < 2_000_000
    again = UndoJournal(tmp_path / "undo", max_entries=10)
    assert again.find("op8999", "app", LOCAL).steps[0]["path"] == ["8999"]
    assert all(json.loads(line) for line in path.read_bytes().splitlines())
