"""A full disk, a read-only disk, another disk: one clear answer each, and nothing lost."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from computer_linker.errors import ExecutionFailed
from computer_linker.undo.journal import UndoJournal
from support.road import FOLDER_CAPABILITIES, LOCAL, Road

pytestmark = pytest.mark.anyio


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with one megabyte, as the scope's root."""
    root = tmp_path / "root"
    root.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(root)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a tmpfs needs root and CAP_SYS_ADMIN")
    yield root
    subprocess.run(["umount", "-l", str(root)], check=True)


async def test_a_full_disk_fails_the_write_and_keeps_the_old_file(tmp_path: Path, small_disk: Path) -> None:
    async with Road.open(tmp_path) as road:
        (road.root / "f").write_text("old")
        for op, target, parts in (
            ("file.write", "f", {"input": {"content": "x" * 3_000_000}}),
            ("file.create", "new", {"input": {"content": "x" * 3_000_000}}),
            ("file.write", "f", {"input": {"content": "x" * 3_000_000}, "options": {"append": True}}),
        ):
            envelope = await road.call(op, target, **parts)
            assert envelope["error"]["code"] == "execution_failed", envelope
            assert "space" in envelope["error"]["message"]
            assert os.listdir(road.root) == ["f"] and (road.root / "f").read_text() == "old"
        diff = (
            "--- f\n+++ f\n@@ -1 +1 @@\n-old\n+new\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+" + "x" * 3_000_000 + "\n"
        )
        assert await road.code("file.patch", input={"diff": diff}) == "execution_failed"
        assert os.listdir(road.root) == ["f"] and (road.root / "f").read_text() == "old"
        await road.data("file.write", "f", input={"content": "small"})


async def test_undo_works_from_another_disk(tmp_path: Path, small_disk: Path) -> None:
    async with Road.open(tmp_path) as road:
        (road.root / "d" / "sub").mkdir(parents=True)
        (road.root / "d" / "sub" / "f").write_text("old")
        (road.root / "d" / "sub" / "f").chmod(0o640)
        written = await road.call("file.write", "d/sub/f", input={"content": "new"})
        await road.data("file.undo", input={"operationId": written["operationId"]})
        assert (road.root / "d" / "sub" / "f").read_text() == "old"
        assert (road.root / "d" / "sub" / "f").stat().st_mode & 0o777 == 0o640
        deleted = await road.call("file.delete", "d/sub/f")
        assert await road.call("file.undo", input={"operationId": deleted["operationId"]})
        assert (road.root / "d" / "sub" / "f").read_text() == "old"
        gone = await road.call("file.delete", "d", options={"recursive": True})
        assert gone["ok"] and "undoable: false" in gone["warnings"][0]
        assert os.listdir(road.root) == []


async def test_a_read_only_disk_says_so(tmp_path: Path, small_disk: Path) -> None:
    (small_disk / "f").write_text("old")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    async with Road.open(tmp_path) as road:
        for op, target, parts in (
            ("file.write", "f", {"input": {"content": "x"}}),
            ("file.delete", "f", {}),
            ("file.mkdir", "d", {}),
            ("file.move", "f", {"input": {"destination": "g"}}),
        ):
            assert await road.code(op, target, **parts) == "os_permission_required"
        assert (await road.data("file.read", "f"))["content"] == "old"


async def test_a_move_to_another_disk_is_refused_whole(tmp_path: Path, small_disk: Path) -> None:
    scope = {"id": "app", "type": "folder", "roots": [str(tmp_path)], "capabilities": FOLDER_CAPABILITIES}
    async with Road.open(tmp_path, [scope]) as road:
        (tmp_path / "f").write_text("x")
        assert await road.code("file.move", "f", input={"destination": "root/f"}) == "execution_failed"
        assert (tmp_path / "f").exists() and os.listdir(small_disk) == []
        await road.data("file.copy", "f", input={"destination": "root/f"})
        assert (small_disk / "f").read_text() == "x"


async def test_a_full_state_folder_fails_the_change_and_keeps_the_journal(tmp_path: Path, small_disk: Path) -> None:

    journal = UndoJournal(small_disk / "undo")
    journal.begin("one", "app", "local:tester").commit([{"do": "rmdir", "root": "/r", "path": ["x"]}])
    with (small_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
        while True:
            filler.write(b"x" * 4096)
    with pytest.raises(ExecutionFailed):
        for number in range(1000):
            journal.begin(f"big{number}", "app", "local:tester").commit(
                [{"do": "rmdir", "root": "/r", "path": ["y" * 3000]}]
            )
    (small_disk / "filler").unlink()
    journal.begin("two", "app", "local:tester").commit([{"do": "rmdir", "root": "/r", "path": ["z"]}])
    again = UndoJournal(small_disk / "undo")
    assert again.find("one", "app", LOCAL).steps and again.find("two", "app", LOCAL).steps
    for opened in (journal, again):
        await opened.aclose()
