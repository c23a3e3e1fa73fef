"""file.patch beside git apply and patch: the file's edges, text around a diff, plain diffs and other encodings."""

import base64
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.road import LOCAL, Road

pytestmark = pytest.mark.anyio
APPEND = "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,4 @@\n one\n two\n three\n+four\n"
PREPEND = "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,4 @@\n+zero\n one\n two\n three\n"
BARE = "--- a/f.txt\n+++ b/f.txt\n@@ -3,0 +4 @@\n+four\n"


@pytest.mark.parametrize("diff", [APPEND, PREPEND, BARE], ids=["append", "prepend", "no context"])
async def test_an_addition_sent_twice_is_made_once(road: Road, diff: str) -> None:
    """Defect: a hunk without context on one side was applied a second time."""
    file = road.root / "f.txt"
    file.write_text("one\ntwo\nthree\n")
    await road.data("file.patch", input={"diff": diff})
    once = file.read_text()
    envelope = await road.call("file.patch", input={"diff": diff})
    assert envelope["error"]["code"] == "conflict" and envelope["error"]["details"]["lines"], envelope
    assert file.read_text() == once


async def test_a_hunk_without_lines_after_it_belongs_at_the_end(road: Road) -> None:
    file = road.root / "f.txt"
    file.write_text("one\ntwo\nthree\nlast\n")
    refused = await road.call("file.patch", input={"diff": APPEND})
    assert refused["error"]["code"] == "conflict" and refused["error"]["details"]["lines"] == [1]
    assert "end of f.txt" in refused["error"]["message"]
    assert file.read_text() == "one\ntwo\nthree\nlast\n"
    file.write_text("before\none\ntwo\nthree\n")
    await road.data("file.patch", input={"diff": APPEND})
    assert file.read_text() == "before\none\ntwo\nthree\nfour\n"


def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two versions of a small tree: a changed, a new, a deleted and an equal file."""
    old, new = tmp_path / "orig-1.0", tmp_path / "new-1.1"
    for folder in (old, new):
        (folder / "sub").mkdir(parents=True)
        (folder / "same.txt").write_text("same\n")
    (old / "sub" / "f.txt").write_text("".join(f"line {number}\n" for number in range(30)))
    (new / "sub" / "f.txt").write_text("".join(f"line {number}\n" for number in range(30) if number != 7) + "end\n")
    (new / "made.txt").write_text("made\n")
    (old / "gone.txt").write_text("gone\n")
    return old, new


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def test_the_output_of_diff_on_two_folders_applies(road: Road, tmp_path: Path) -> None:
    """Defect: `diff -ruN a b` was refused: its command lines, its times for absent files, its two folder names."""
    old, new = folders(tmp_path)
    made = subprocess.run(["diff", "-ruN", old.name, new.name], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 1 and "diff -ruN" in made.stdout
    shutil.copytree(old, road.root, dirs_exist_ok=True)
    data = await road.data("file.patch", input={"diff": made.stdout})
    assert {(file["path"], file["action"]) for file in data["files"]} == {
        ("gone.txt", "deleted"), ("made.txt", "created"), ("sub/f.txt", "modified"),
    }  # fmt: skip
    assert contents(road.root) == contents(new)


MAIL = (
    "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nSubject: [PATCH] x\n\n"
    "Words, even -- these\n--- and these.\n---\n f.txt | 1 +\n 1 file changed\n\n"
    "diff --git a/f.txt b/f.txt\nindex 1..2 100644\n--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-old\n+new\n-- \n2.39.5\n"
)
AROUND = {
    "a mail": MAIL,
    "a header as Debian writes it": "Description: x\n Long.\nAuthor: A\n---\n--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-old\n+new\n",
    "an index line": "Index: x-1.0/f.txt\n=====\n--- x-1.0.orig/f.txt\n+++ x-1.0/f.txt\n@@ -1 +1 @@\n-old\n+new\n",
    "a backup's name": "--- f.txt.orig\t2020-01-01 10:00:00\n+++ f.txt\t2020-01-01 10:00:01\n@@ -1 +1 @@\n-old\n+new\n",
    "a fenced answer": "Here it is:\n```diff\n--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-old\n+new\n```\nApply it.\n",
}


AROUND["git's prefixes for the index and the work tree"] = (
    "diff --git i/f.txt w/f.txt\nindex 1..2 100644\n--- i/f.txt\n+++ w/f.txt\n@@ -1 +1 @@\n-old\n+new\n"
)
AROUND["both forms without text between them"] = (
    "Words.\n\n--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-old\n+new\n"
    "diff --git a/g.txt b/g.txt\nnew file mode 100644\n--- /dev/null\n+++ b/g.txt\n@@ -0,0 +1 @@\n+x\n"
)
AROUND["a new file in the same folder name"] = (
    "--- x-1.orig/f.txt\n+++ x-1/f.txt\n@@ -1 +1 @@\n-old\n+new\n--- /dev/null\n+++ x-1/g.txt\n@@ -0,0 +1 @@\n+x\n"
)


@pytest.mark.parametrize("diff", AROUND.values(), ids=AROUND.keys())
async def test_text_around_a_diff_is_skipped(road: Road, diff: str) -> None:
    """Defect: text before, between or after the sections was refused, though git apply and patch take it."""
    (road.root / "f.txt").write_text("old\n")
    await road.data("file.patch", input={"diff": diff})
    assert (road.root / "f.txt").read_text() == "new\n"
    assert (road.root / "g.txt").exists() is ("g.txt" in diff)


async def test_a_latin_1_file_keeps_its_bytes(road: Road) -> None:
    """Defect: files that are not UTF-8 were refused. A diff of ASCII lines, one in base64, and edits all keep the other bytes."""
    file = road.root / "f.txt"
    file.write_bytes(b"caf\xe9\none\ntwo\n")
    await road.data("file.patch", input={"diff": "--- a/f.txt\n+++ b/f.txt\n@@ -2,2 +2,2 @@\n one\n-two\n+2\n"})
    assert file.read_bytes() == b"caf\xe9\none\n2\n"
    diff = b"--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,2 @@\n-caf\xe9\n+th\xe9\n one\n"
    sent: dict[str, Any] = {"diff": base64.b64encode(diff).decode(), "encoding": "base64"}
    await road.data("file.patch", input=sent)
    assert file.read_bytes() == b"th\xe9\none\n2\n"
    await road.data("file.patch", "f.txt", input={"edits": [{"oldText": "one", "newText": "1"}]})
    assert file.read_bytes() == b"th\xe9\n1\n2\n"
    missed = await road.call("file.patch", input=sent)
    assert missed["error"]["code"] == "conflict"
    assert file.read_bytes() == b"th\xe9\n1\n2\n"


@pytest.mark.parametrize(
    "request_",
    [
        {"diff": "--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-\udce9\n+x\n"},
        {"diff": "%%%", "encoding": "base64"},
        {"edits": [{"oldText": "\udce9", "newText": "x"}]},
        {"edits": [{"oldText": "a", "newText": "x"}], "encoding": "base64"},
    ],
)
async def test_no_request_names_a_byte_by_a_surrogate(road: Road, request_: dict[str, Any]) -> None:
    (road.root / "f.txt").write_bytes(b"\xe9\n")
    target = "f.txt" if "edits" in request_ else None
    reply = await road.app.dispatcher.call_wire(
        {"scope": "app", "op": "file.patch", "target": target, "input": request_}, LOCAL
    )
    assert reply.envelope["error"]["code"] == "invalid_request"
    assert (road.root / "f.txt").read_bytes() == b"\xe9\n"
