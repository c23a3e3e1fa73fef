"""file.write, create, mkdir, move, copy and delete: what they change, what they keep, what they refuse."""

import base64
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from support.road import FOLDER_CAPABILITIES, Road

pytestmark = pytest.mark.anyio


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


async def test_a_write_answers_what_was_written(road: Road) -> None:
    envelope = await road.call("file.write", "a.txt", input={"content": "héllo"})
    digest = sha256("héllo".encode()).hexdigest()
    assert envelope["data"] == {"path": "a.txt", "size": 6, "sha256": digest, "created": True}
    assert envelope["effect"] == "confirmed"
    again = await road.call("file.write", "a.txt", input={"content": "x"})
    assert again["data"]["created"] is False
    assert names(road.root) == ["a.txt"]


async def test_a_write_keeps_mode_and_never_the_set_user_id_bit(road: Road) -> None:
    (road.root / "run.sh").write_text("x")
    (road.root / "run.sh").chmod(0o4750)
    await road.data("file.write", "run.sh", input={"content": "y"})
    assert (road.root / "run.sh").stat().st_mode & 0o7777 == 0o750


async def test_append_adds_to_the_end_and_base64_writes_bytes(road: Road) -> None:
    raw = bytes(range(256)) * 10
    await road.data("file.write", "b", input={"content": base64.b64encode(raw).decode(), "encoding": "base64"})
    data = await road.data("file.write", "b", input={"content": "end"}, options={"append": True})
    assert (road.root / "b").read_bytes() == raw + b"end"
    assert data["sha256"] == sha256(raw + b"end").hexdigest()
    await road.data("file.write", "new", input={"content": "only"}, options={"append": True})
    assert (road.root / "new").read_text() == "only"


@pytest.mark.parametrize("content", ["a", "!!!!", "YQ=", "YQ==\n", "é==="])
async def test_content_that_is_not_base64_changes_nothing(road: Road, content: str) -> None:
    (road.root / "f").write_text("old")
    code = await road.code("file.write", "f", input={"content": content, "encoding": "base64"})
    assert code == "invalid_request" and (road.root / "f").read_text() == "old"


async def test_a_large_write_is_whole(road: Road) -> None:
    text = "0123456789abcdef\n" * 400_000
    data = await road.data("file.write", "big", input={"content": text})
    assert data["size"] == len(text) and (road.root / "big").read_text() == text
    packed = base64.b64encode(text.encode()).decode()
    again = await road.data("file.write", "big2", input={"content": packed, "encoding": "base64"})
    assert again["sha256"] == data["sha256"]


async def test_a_stale_digest_is_a_conflict_and_changes_nothing(road: Road) -> None:
    (road.root / "f.txt").write_text("old")
    for digest in ("0" * 64, sha256(b"older").hexdigest()):
        options = {"ifSha256": digest}
        assert await road.code("file.write", "f.txt", input={"content": "x"}, options=options) == "conflict"
    assert await road.code("file.write", "gone", input={"content": "x"}, options={"ifSha256": "0" * 64}) == "conflict"
    assert (
        await road.code("file.write", "f.txt", input={"content": "x"}, options={"ifSha256": "zz"}) == "invalid_request"
    )
    assert names(road.root) == ["f.txt"] and (road.root / "f.txt").read_text() == "old"
    good = {"ifSha256": sha256(b"old").hexdigest().upper()}
    await road.data("file.write", "f.txt", input={"content": "new"}, options=good)
    assert (road.root / "f.txt").read_text() == "new"


async def test_parents_are_made_only_when_asked_for(road: Road) -> None:
    assert await road.code("file.write", "a/b/c.txt", input={"content": "x"}) == "not_found"
    assert names(road.root) == []
    await road.data("file.write", "a/b/c.txt", input={"content": "x"}, options={"createParents": True})
    assert names(road.root) == ["a", "a/b", "a/b/c.txt"]
    assert await road.code("file.write", "a/b", input={"content": "x"}) == "invalid_request"
    code = await road.code("file.write", "a/b/c.txt/d", input={"content": "x"}, options={"createParents": True})
    assert code == "not_found"


async def test_create_never_replaces(road: Road) -> None:
    await road.data("file.create", "a", input={"content": "first"})
    assert await road.code("file.create", "a", input={"content": "second"}) == "already_exists"
    assert (road.root / "a").read_text() == "first"


async def test_mkdir_says_whether_it_made_the_folder(road: Road) -> None:
    assert await road.code("file.mkdir", "a/b") == "not_found"
    assert await road.data("file.mkdir", "a/b", options={"parents": True}) == {"path": "a/b", "created": True}
    assert await road.data("file.mkdir", "a/b") == {"path": "a/b", "created": False}
    (road.root / "f").touch()
    assert await road.code("file.mkdir", "f") == "already_exists"


async def test_move_never_replaces_unless_asked(road: Road) -> None:
    (road.root / "a").write_text("A")
    (road.root / "b").write_text("B")
    assert await road.code("file.move", "a", input={"destination": "b"}) == "already_exists"
    assert (road.root / "b").read_text() == "B"
    assert await road.data("file.move", "a", input={"destination": "b"}, options={"overwrite": True}) == {
        "from": "a", "to": "b",
    }  # fmt: skip
    assert (names(road.root), (road.root / "b").read_text()) == (["b"], "A")
    await road.data("file.move", "b", input={"destination": "x/y"}, options={"createParents": True})
    assert names(road.root) == ["x", "x/y"]
    assert await road.code("file.move", "gone", input={"destination": "z"}) == "not_found"
    assert await road.code("file.move", "x", input={"destination": "x/y/z"}) in ("invalid_request", "not_found")
    assert await road.code("file.move", "x", input={"destination": "x/z"}) == "invalid_request"


async def test_a_folder_is_moved_whole_and_never_over_something(road: Road) -> None:
    (road.root / "d").mkdir()
    (road.root / "d" / "f").touch()
    (road.root / "e").mkdir()
    for overwrite in (False, True):
        code = await road.code("file.move", "d", input={"destination": "e"}, options={"overwrite": overwrite})
        assert code in ("already_exists", "conflict")
    await road.data("file.move", "d", input={"destination": "e/d"})
    assert names(road.root) == ["e", "e/d", "e/d/f"]


async def test_a_copy_has_the_same_content_and_mode(road: Road) -> None:
    (road.root / "d" / "sub").mkdir(parents=True)
    (road.root / "d" / "run.sh").write_text("#!/bin/sh\n")
    (road.root / "d" / "run.sh").chmod(0o755)
    (road.root / "d" / "ln").symlink_to("run.sh")
    await road.data("file.copy", "d/run.sh", input={"destination": "r2"})
    assert os.access(road.root / "r2", os.X_OK)
    assert await road.code("file.copy", "d/run.sh", input={"destination": "r2"}) == "already_exists"
    envelope = await road.call("file.copy", "d", input={"destination": "d2"})
    assert envelope["ok"] and "1 links" in envelope["warnings"][0]
    assert names(road.root / "d2") == ["run.sh", "sub"]
    assert await road.code("file.copy", "d", input={"destination": "d/inside"}) == "invalid_request"
    assert await road.code("file.copy", "d/ln", input={"destination": "l2"}) == "invalid_request"


async def test_delete_needs_recursive_for_a_folder_and_counts(road: Road) -> None:
    (road.root / "d" / "e").mkdir(parents=True)
    (road.root / "d" / "e" / "f").touch()
    assert await road.code("file.delete", "d") == "invalid_request"
    assert await road.data("file.delete", "d", options={"recursive": True}) == {"path": "d", "entries": 3}
    assert names(road.root) == []
    assert await road.code("file.delete", "d") == "not_found"


@pytest.mark.parametrize(
    ("op", "parts"),
    [
        ("file.write", {"input": {"content": "x", "mode": 1}}),
        ("file.write", {"input": {}}),
        ("file.write", {"input": {"content": 5}}),
        ("file.write", {"input": {"content": "x"}, "options": {"append": "yes"}}),
        ("file.delete", {"options": {"recursive": 1}}),
        ("file.delete", {"options": {"force": True}}),
        ("file.move", {"input": {"destination": ""}}),
        ("file.create", {"input": {"content": "\ud800"}}),
    ],
)
async def test_misspelt_or_mistyped_requests_change_nothing(road: Road, op: str, parts: dict[str, Any]) -> None:
    (road.root / "f").write_text("old")
    target = "new" if op == "file.create" else "f"
    assert await road.code(op, target, **parts) == "invalid_request"
    assert names(road.root) == ["f"] and (road.root / "f").read_text() == "old"


async def test_without_the_capability_nothing_is_changed(tmp_path: Path) -> None:
    scope = {"id": "app", "type": "folder", "roots": [str(tmp_path / "root")], "capabilities": ["fs:read"]}
    async with Road.open(tmp_path, [scope]) as road:
        (road.root / "f").write_text("old")
        for op, parts in (
            ("file.write", {"input": {"content": "x"}}), ("file.create", {"input": {"content": "x"}}),
            ("file.delete", {}), ("file.mkdir", {}), ("file.move", {"input": {"destination": "g"}}),
            ("file.copy", {"input": {"destination": "g"}}), ("file.patch", {"input": {"diff": "x"}}),
            ("file.undo", {"input": {"operationId": "x"}}),
        ):  # fmt: skip
            assert await road.code(op, "f", **parts) == "permission_denied"
        assert names(road.root) == ["f"] and (road.root / "f").read_text() == "old"


async def test_several_roots_are_told_apart(tmp_path: Path) -> None:
    roots = [str(tmp_path / "root"), str(tmp_path / "second")]
    (tmp_path / "second").mkdir()
    scope = {"id": "app", "type": "folder", "roots": roots, "capabilities": FOLDER_CAPABILITIES}
    async with Road.open(tmp_path, [scope]) as road:
        await road.data("file.write", "@1/x", input={"content": "two"})
        moved = await road.call("file.move", "@1/x", input={"destination": "y"})
        assert moved["data"] == {"from": "@1/x", "to": "y"}
        assert names(road.root) == ["y"]
        await road.data("file.undo", input={"operationId": moved["operationId"]})
        assert names(tmp_path / "second") == ["x"] and names(road.root) == []


@pytest.mark.parametrize("target", ["trail/", "sub/trail/", "trail/.", ".", "trail//"])
@pytest.mark.parametrize("op", ["file.write", "file.create"])
async def test_a_name_with_a_slash_at_its_end_is_no_file(road: Road, op: str, target: str) -> None:
    """Defect: `file.write trail/` made a file."""
    envelope = await road.call(op, target, input={"content": "x"}, options={"createParents": True})
    assert envelope["error"]["code"] == "invalid_request" and "folder" in envelope["error"]["message"]
    assert not list(road.root.iterdir())
