"""file.undo: every change can be taken back, once, and only while nothing else happened to it."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.undo.journal import UndoJournal
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio


def picture(root: Path) -> dict[str, Any]:
    """Everything in a folder: types, contents, modes."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        kind = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
        found[str(path.relative_to(root))] = (kind, path.lstat().st_mode)
    return found


def furnish(root: Path) -> None:
    (root / "a.txt").write_text("old a\n")
    (root / "b.txt").write_text("old b\n")
    (root / "a.txt").chmod(0o640)
    (root / "d" / "sub").mkdir(parents=True)
    (root / "d" / "x.txt").write_text("x")
    (root / "d" / "sub" / "y.txt").write_text("y")
    (root / "d" / "ln").symlink_to("x.txt")
    (root / "twin").write_text("hard")
    os.link(root / "twin", root / "twin2")


DIFF = (
    "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old a\n+new a\n"
    "diff --git a/b.txt b/b.txt\ndeleted file mode 100644\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old b\n"
    "--- /dev/null\n+++ b/n/e/w.txt\n@@ -0,0 +1 @@\n+fresh\n"
)

CHANGES: list[tuple[str, str | None, dict[str, Any]]] = [
    ("file.write", "a.txt", {"input": {"content": "new"}}),
    ("file.write", "a.txt", {"input": {"content": "new"}, "options": {"append": True}}),
    ("file.write", "twin", {"input": {"content": "new"}}),
    ("file.write", "n/e/w.txt", {"input": {"content": "new"}, "options": {"createParents": True}}),
    ("file.create", "new.txt", {"input": {"content": ""}}),
    ("file.mkdir", "p/q/r", {"options": {"parents": True}}),
    ("file.move", "a.txt", {"input": {"destination": "moved.txt"}}),
    ("file.move", "a.txt", {"input": {"destination": "p/q.txt"}, "options": {"createParents": True}}),
    ("file.move", "a.txt", {"input": {"destination": "b.txt"}, "options": {"overwrite": True}}),
    ("file.move", "d", {"input": {"destination": "e"}}),
    ("file.copy", "a.txt", {"input": {"destination": "c.txt"}}),
    ("file.copy", "a.txt", {"input": {"destination": "b.txt"}, "options": {"overwrite": True}}),
    ("file.copy", "d", {"input": {"destination": "e/f"}, "options": {"createParents": True}}),
    ("file.delete", "a.txt", {}),
    ("file.delete", "d", {"options": {"recursive": True}}),
    ("file.delete", "d/ln", {}),
    ("file.patch", None, {"input": {"diff": DIFF}}),
    ("file.patch", "a.txt", {"input": {"edits": [{"oldText": "old", "newText": "new"}]}}),
]


@pytest.mark.parametrize(("op", "target", "parts"), CHANGES)
async def test_every_change_can_be_taken_back_and_made_again(
    road: Road, op: str, target: str | None, parts: dict[str, Any]
) -> None:
    furnish(road.root)
    before = picture(road.root)
    done = await road.call(op, target, **parts)
    assert done["ok"], done
    after = picture(road.root)
    assert after != before
    for expected in (before, after, before):
        dry = await road.call("file.undo", input={"operationId": done["operationId"]}, options={"dryRun": True})
        assert dry["ok"], dry
        changed = await road.call("file.undo", input={"operationId": done["operationId"]})
        assert changed["ok"] and changed["effect"] == "confirmed", changed
        assert changed["data"] == dry["data"]
        assert picture(road.root) == expected
        assert await road.code("file.undo", input={"operationId": done["operationId"]}) == "not_found"
        done = changed


@pytest.mark.parametrize(("op", "target", "parts"), CHANGES)
async def test_what_changed_since_is_a_conflict_and_stays(
    road: Road, op: str, target: str | None, parts: dict[str, Any]
) -> None:
    furnish(road.root)
    known = set(road.root.rglob("*"))
    done = await road.call(op, target, **parts)
    touched = [path for path in road.root.rglob("*") if path not in known and path.is_file()]
    changed = parts["input"]["destination"] if op == "file.copy" else target or "a.txt"
    for path in touched or [road.root / changed]:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            path.unlink(missing_ok=True)
            path.write_text("somebody else was here")
    if op == "file.mkdir":
        return
    before = picture(road.root)
    for options in ({"dryRun": True}, {}):
        envelope = await road.call("file.undo", input={"operationId": done["operationId"]}, options=options)
        if op == "file.move" and target == "d":
            # A moved folder is the same folder whatever is in it, so it can still be moved back.
            continue
        assert not envelope["ok"] and envelope["error"]["code"] == "conflict", envelope
    if not (op == "file.move" and target == "d"):
        assert picture(road.root) == before


async def test_an_undo_belongs_to_its_scope(tmp_path: Path) -> None:
    scopes = [folder_scope(tmp_path / "root"), folder_scope(tmp_path / "root", "other")]
    async with Road.open(tmp_path, scopes) as road:
        done = await road.call("file.write", "a", input={"content": "x"})
        request = {"operationId": done["operationId"]}
        assert await road.code("file.undo", scope="other", input=request) == "not_found"
        assert (road.root / "a").exists()
        await road.data("file.undo", input=request)
        assert not (road.root / "a").exists()


@pytest.mark.parametrize("operation_id", ["", "x" * 65, "../../etc", "01ARZ3NDEKTSV4RRFFQ69G5FAV"])
async def test_an_unknown_id_changes_nothing(road: Road, operation_id: str) -> None:
    assert await road.code("file.undo", input={"operationId": operation_id}) in ("invalid_request", "not_found")


async def test_an_undo_obeys_the_scopes_rules_of_today(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        done = await road.call("file.write", "keys/a", input={"content": "x"}, options={"createParents": True})
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", deniedPaths=["keys"])]) as road:
        code = await road.code("file.undo", input={"operationId": done["operationId"]})
        assert code == "permission_denied" and (road.root / "keys" / "a").exists()


async def test_undo_survives_a_restart_of_the_service(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        (road.root / "a").write_text("old")
        done = await road.call("file.write", "a", input={"content": "new"})
    async with Road.open(tmp_path) as road:
        await road.data("file.undo", input={"operationId": done["operationId"]})
        assert (road.root / "a").read_text() == "old"


async def test_the_journal_is_private_and_bounded(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        journal = road.app.services.use(UndoJournal)
        journal.max_entries, journal.max_bytes = 5, 100
        (road.root / "a").write_text("0" * 30)
        ids = [
            (await road.call("file.write", "a", input={"content": str(number) * 30}))["operationId"]
            for number in range(9)
        ]
        assert len(os.listdir(road.home / "undo" / "kept")) <= 3
        assert await road.code("file.undo", input={"operationId": ids[0]}) == "not_found"
        await road.data("file.undo", input={"operationId": ids[-1]})
        assert (road.root / "a").read_text() == "7" * 30
        for path in (road.home / "undo", road.home / "undo" / "kept"):
            assert path.stat().st_mode & 0o077 == 0
        assert (road.home / "undo" / "journal.jsonl").stat().st_mode & 0o077 == 0


async def test_what_is_too_large_to_keep_says_so(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        road.app.services.use(UndoJournal).max_bytes = 100
        (road.root / "d").mkdir()
        (road.root / "d" / "big").write_text("x" * 1000)
        envelope = await road.call("file.delete", "d", options={"recursive": True})
        assert "undoable: false" in envelope["warnings"][0] and envelope["effect"] == "confirmed"
        assert list(road.root.iterdir()) == []
        assert await road.code("file.undo", input={"operationId": envelope["operationId"]}) == "not_found"


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("place", ["a.txt", "new.txt", "n/e/w.txt"])
async def test_two_writes_at_the_same_moment_are_taken_back_one_by_one(road: Road, place: str, append: bool) -> None:
    furnish(road.root)
    before, answers = picture(road.root), dict[str, dict[str, Any]]()

    async def write(content: str) -> None:
        options = {"createParents": True, "append": append}
        answers[content] = await road.call("file.write", place, input={"content": content}, options=options)

    async with anyio.create_task_group() as group:
        group.start_soon(write, "first")
        group.start_soon(write, "second")
    start = before[place][0].decode() if place == "a.txt" and append else ""
    older, newer = ("first", "second") if (road.root / place).read_text().endswith("second") else ("second", "first")
    assert (road.root / place).read_text() == (f"{start}{older}{newer}" if append else newer)
    assert [answers[one]["data"]["created"] for one in (older, newer)] == [place != "a.txt", False]
    await road.data("file.undo", input={"operationId": answers[newer]["operationId"]})
    assert (road.root / place).read_text() == start + older
    await road.data("file.undo", input={"operationId": answers[older]["operationId"]})
    assert picture(road.root) == before


async def test_a_write_beside_a_series_of_changes_loses_nothing(road: Road) -> None:
    furnish(road.root)
    for _ in range(5):
        before = picture(road.root)
        done: list[dict[str, Any]] = []

        async def call(op: str, target: str | None, content: dict[str, Any], done: list[dict[str, Any]]) -> None:
            done.append(await road.call(op, target, input=content))

        async with anyio.create_task_group() as group:
            group.start_soon(call, "file.patch", None, {"diff": DIFF}, done)
            group.start_soon(call, "file.write", "n.txt", {"content": "x"}, done)
            group.start_soon(call, "file.write", "a.txt", {"content": "y"}, done)
        for one in reversed([one for one in done if one["ok"]]):
            await road.data("file.undo", input={"operationId": one["operationId"]})
        assert picture(road.root) == before
