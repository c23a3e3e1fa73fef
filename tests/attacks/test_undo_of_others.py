"""What one principal can take back is not pushed out of the undo journal by another."""

from dataclasses import replace
from pathlib import Path

import pytest

from computer_linker.undo.journal import UndoJournal
from support.road import LOCAL, Road

pytestmark = pytest.mark.anyio

OTHER = replace(LOCAL, id="oauth:flood", proof="oauth", grants=frozenset({"app"}))


@pytest.mark.parametrize("bounds", [{"max_entries": 20}, {"max_bytes": 20_000}], ids=["entries", "bytes"])
async def test_a_flood_of_changes_leaves_another_principals_undo(tmp_path: Path, bounds: dict[str, int]) -> None:
    async with Road.open(tmp_path) as road:
        journal = UndoJournal(tmp_path / "small", **bounds)
        road.app.services.provide(UndoJournal, journal)
        (road.root / "mine.txt").write_text("first" * 200)
        mine = await road.call("file.write", "mine.txt", input={"content": "second"})
        (road.root / "theirs.txt").write_text("x" * 1000)
        for number in range(60):
            content = f"{number:04}" * 250
            done = await road.call("file.write", "theirs.txt", input={"content": content}, principal=OTHER)
            assert done["ok"], done
        await road.data("file.undo", input={"operationId": mine["operationId"]})
        assert (road.root / "mine.txt").read_text() == "first" * 200
        assert (await road.call("file.undo", input={"operationId": done["operationId"]}, principal=OTHER))["ok"], (
            "its own newest is there"
        )
        assert len(list((tmp_path / "small" / "kept").iterdir())) < 60


async def test_many_principals_share_the_journal_alike(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path / "undo", max_entries=30)
    for number in range(5):
        journal.begin(f"mine{number}", "app", "honest").commit([{"do": "remove", "root": "/r", "path": ["a"]}])
    for number in range(400):
        entry = journal.begin(f"flood{number}", "app", f"client{number % 4}")
        entry.commit([{"do": "remove", "root": "/r", "path": ["a"]}])
    known = [record.principal for record in journal._records.values()]
    assert len(known) <= 31
    counts = {who: known.count(who) for who in set(known)}
    assert counts["honest"] == 5 and max(counts.values()) - min(counts.values()) <= 2, counts
    await journal.aclose()
