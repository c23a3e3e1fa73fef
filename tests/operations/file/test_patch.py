"""file.patch: strict diffs and literal edits, all of them or none."""

import difflib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from computer_linker.errors import LinkError
from computer_linker.providers.patching.apply import apply_hunks
from computer_linker.providers.patching.diff import parse_diff
from support.road import Road

pytestmark = pytest.mark.anyio


@pytest.fixture
async def patched(road: Road) -> Road:
    (road.root / "f.txt").write_text("old\n")
    (road.root / "lines.txt").write_text("".join(f"line {number}\n" for number in range(1, 21)))
    return road


def state(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


async def test_a_diff_changes_makes_renames_and_deletes_files(patched: Road) -> None:
    (patched.root / "gone.txt").write_text("x\n")
    (patched.root / "name.txt").write_text("same\n")
    diff = (
        "diff --git a/f.txt b/f.txt\nindex 1..2 100644\n--- a/f.txt\n+++ b/f.txt\n@@ -1 +1,2 @@\n-old\n+new\n+more\n"
        "diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/n/new.sh b/n/new.sh\nnew file mode 100755\n--- /dev/null\n+++ b/n/new.sh\n@@ -0,0 +1 @@\n+#!/bin/sh\n"
        "diff --git a/name.txt b/other.txt\nsimilarity index 100%\nrename from name.txt\nrename to other.txt\n"
    )
    envelope = await patched.call("file.patch", input={"diff": diff})
    files = envelope["data"]["files"]
    assert [(file["path"], file["action"], file["additions"], file["deletions"]) for file in files] == [
        ("f.txt", "modified", 2, 1),
        ("gone.txt", "deleted", 0, 1),
        ("n/new.sh", "created", 1, 0),
        ("other.txt", "renamed", 0, 0),
    ]
    assert envelope["effect"] == "confirmed" and files[1]["sha256"] is None
    assert os.access(patched.root / "n" / "new.sh", os.X_OK)
    assert sorted(state(patched.root)) == ["f.txt", "lines.txt", "n/new.sh", "other.txt"]
    assert (patched.root / "f.txt").read_text() == "new\nmore\n"


async def test_a_hunk_may_have_moved_but_must_match_exactly_and_once(patched: Road) -> None:
    hunk = "--- lines.txt\n+++ lines.txt\n@@ -1,3 +1,3 @@\n line 10\n-line 11\n+LINE 11\n line 12\n"
    await patched.data("file.patch", input={"diff": hunk})
    assert "LINE 11\n" in (patched.root / "lines.txt").read_text()
    assert await patched.code("file.patch", input={"diff": hunk}) == "conflict"
    (patched.root / "twice.txt").write_text("a\nb\nc\na\nb\nc\n")
    twice = "--- twice.txt\n+++ twice.txt\n@@ -2,2 +2,2 @@\n a\n-b\n+B\n"
    envelope = await patched.call("file.patch", input={"diff": twice})
    assert envelope["error"]["code"] == "conflict" and envelope["error"]["details"]["lines"] == [1, 4]


async def test_one_bad_hunk_leaves_every_file_as_it_was(patched: Road) -> None:
    before = state(patched.root)
    diff = "--- f.txt\n+++ f.txt\n@@ -1 +1 @@\n-old\n+new\n--- lines.txt\n+++ lines.txt\n@@ -1 +1 @@\n-not there\n+x\n"
    assert await patched.code("file.patch", input={"diff": diff}) == "conflict"
    make = "--- /dev/null\n+++ b/x/y.txt\n@@ -0,0 +1 @@\n+x\n--- /dev/null\n+++ b/f.txt\n@@ -0,0 +1 @@\n+x\n"
    assert await patched.code("file.patch", input={"diff": make}) == "already_exists"
    clash = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n--- /dev/null\n+++ b/x/y\n@@ -0,0 +1 @@\n+x\n"
    envelope = await patched.call("file.patch", input={"diff": clash})
    assert not envelope["ok"]
    assert state(patched.root) == before


async def test_a_miss_says_what_stands_there_instead(patched: Road) -> None:
    (patched.root / "code.py").write_text("def run(value):\n    return value + 1\n\nprint(run(2))\n")
    edits = [{"oldText": "    return  value +1\n", "newText": "x"}]
    envelope = await patched.call("file.patch", "code.py", input={"edits": edits})
    details = envelope["error"]["details"]
    assert envelope["error"]["code"] == "conflict"
    assert details["nearest"] == {"line": 2, "endLine": 2, "text": "    return value + 1"}
    assert details["difference"] == [
        {"at": 11, "asked": " ", "found": ""},
        {"at": 19, "asked": "", "found": " "},
    ]


async def test_without_the_right_to_read_a_miss_shows_no_content(tmp_path: Path) -> None:
    scope = {"id": "app", "type": "folder", "roots": [str(tmp_path / "root")], "capabilities": ["fs:write"]}
    async with Road.open(tmp_path, [scope]) as road:
        (road.root / "s.txt").write_text("the secret is 1234\n")
        for request in (
            {"edits": [{"oldText": "the secret is 123x", "newText": ""}]},
            {"diff": "--- s.txt\n+++ s.txt\n@@ -1 +1 @@\n-the secret is 123x\n+x\n"},
        ):
            envelope = await road.call("file.patch", None if "diff" in request else "s.txt", input=request)
            assert envelope["error"]["code"] == "conflict" and "1234" not in json.dumps(envelope)


async def test_edits_are_literal(patched: Road) -> None:
    await patched.data("file.patch", "f.txt", input={"replacements": [{"old": "old", "new": "$& \\1 \\g<0>"}]})
    assert (patched.root / "f.txt").read_text() == "$& \\1 \\g<0>\n"
    await patched.data("file.patch", "f.txt", input={"edits": [{"oldText": "$&", "newText": "^.*$"}]})
    assert (patched.root / "f.txt").read_text() == "^.*$ \\1 \\g<0>\n"


async def test_edits_are_unique_unless_all_are_meant(patched: Road) -> None:
    edit = {"oldText": "line 1", "newText": "L"}
    envelope = await patched.call("file.patch", "lines.txt", input={"edits": [edit]})
    assert envelope["error"]["code"] == "conflict" and envelope["error"]["details"]["matches"] == 11
    both = [{**edit, "replaceAll": True}, {"path": "f.txt", "oldText": "old", "newText": "new"}]
    data = await patched.data("file.patch", "lines.txt", input={"edits": both})
    assert [file["path"] for file in data["files"]] == ["lines.txt", "f.txt"]
    assert (patched.root / "lines.txt").read_text().count("L") == 11


async def test_line_ends_of_the_file_are_kept(patched: Road) -> None:
    path = patched.root / "crlf.txt"
    path.write_bytes(b"one\r\ntwo\r\n")
    await patched.data("file.patch", input={"diff": "--- crlf.txt\n+++ crlf.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"})
    assert path.read_bytes() == b"one\r\n2\r\n"
    await patched.data("file.patch", "crlf.txt", input={"edits": [{"oldText": "one\n2", "newText": "a\nb"}]})
    assert path.read_bytes() == b"a\r\nb\r\n"
    path.write_bytes(b"end")
    await patched.data("file.patch", input={"diff": "--- crlf.txt\n+++ crlf.txt\n@@ -1 +1 @@\n-end\n+fin\n"})
    assert path.read_bytes() == b"fin"
    marked = "--- crlf.txt\n+++ crlf.txt\n@@ -1 +1 @@\n-fin\n\\ No newline at end of file\n+fin\n"
    await patched.data("file.patch", input={"diff": marked})
    assert path.read_bytes() == b"fin\n"


async def test_a_dry_run_says_everything_and_does_nothing(patched: Road) -> None:
    before = state(patched.root)
    request = {"edits": [{"oldText": "old", "newText": "new"}]}
    dry = await patched.call("file.patch", "f.txt", input=request, options={"dryRun": True})
    assert dry["effect"] == "suspected_noop" and state(patched.root) == before
    assert dry["data"] == await patched.data("file.patch", "f.txt", input=request)


async def test_a_stale_digest_is_a_conflict(patched: Road) -> None:
    request = {"edits": [{"oldText": "old", "newText": "new"}]}
    assert await patched.code("file.patch", "f.txt", input=request, options={"ifSha256": "0" * 64}) == "conflict"
    assert (patched.root / "f.txt").read_text() == "old\n"


LINK = (
    "diff --git a/ln b/ln\nnew file mode 120000\n--- /dev/null\n+++ b/ln\n"
    "@@ -0,0 +1 @@\n+../out\n\\ No newline at end of file\n"
)
NEW = "new file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+pwn\n"
REFUSED: list[tuple[str, str]] = [
    ("a link", LINK),
    ("a link and a file beyond it", LINK + "diff --git a/ln/p.txt b/ln/p.txt\n" + NEW.format("ln/p.txt")),
    ("a file turned into a link", "diff --git a/f.txt b/f.txt\nold mode 100644\nnew mode 120000\n"),
    ("a submodule", "diff --git a/s b/s\nnew file mode 160000\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+Subproject\n"),
    ("a folder mode", "diff --git a/s b/s\nnew file mode 040000\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+x\n"),
    ("a setuid mode", "diff --git a/s b/s\nnew file mode 104755\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+x\n"),
    ("an ed script", "1d\n.\n!touch marker\nw\n"),
    ("an ed script after a header", "--- a/f.txt\n+++ b/f.txt\n1d\n!touch marker\nw\nq\n"),
    (
        "a diff in a message",
        "From 0 Mon Sep 17 00:00:00 2001\nSubject: x\n\n diff --git a/p b/p\n--- /dev/null\n+++ b/phantom.txt\n"
        "@@ -0,0 +1 @@\n+x\n---\ndiff --git a/real.txt b/real.txt\n" + NEW.format("real.txt"),
    ),
    (
        "a diff in a mail before its separator",
        "From 0123456789 Mon Sep 17\n\ndiff --git a/p b/p\n"
        + NEW.format("p")
        + "---\ndiff --git a/q b/q\n"
        + NEW.format("q"),
    ),
    ("a hunk without a header", "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\nhello\n@@ -1 +1 @@\n-a\n+b\n"),
    (
        "a binary file among plain sections",
        "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\nBinary files a/b and b/b differ\n",
    ),
    ("a context diff", "*** a/f.txt\n--- b/f.txt\n***************\n*** 1 ****\n! old\n--- 1 ----\n! new\n"),
    ("a newline in a name", '--- /dev/null\n+++ "b/a\\nb"\n@@ -0,0 +1 @@\n+x\n'),
    ("a header that names another file", "diff --git a/x b/x\n" + NEW.format("evil.txt")),
    ("two names", "--- a/f.txt\n+++ b/g.txt\n@@ -1 +1 @@\n-old\n+new\n"),
    (
        "a rename without saying so",
        "diff --git a/f.txt b/g.txt\n--- a/f.txt\n+++ b/g.txt\n@@ -1 +1 @@\n-old\n+new\n",
    ),
    ("a copy", "diff --git a/f.txt b/g.txt\ncopy from f.txt\ncopy to g.txt\n"),
    ("a binary patch", "diff --git a/b b/b\nnew file mode 100644\nGIT binary patch\nliteral 0\nHcmV?d00001\n"),
    ("a hunk shorter than it says", "--- a/f.txt\n+++ b/f.txt\n@@ -1,5 +1,5 @@\n-old\n+new\n"),
    ("a hunk longer than it says", "--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-old\n+new\n+more\n"),
    ("no hunks", "--- a/f.txt\n+++ b/f.txt\n"),
    ("nothing at all", ""),
    ("both sides missing", "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n"),
    (
        "two sections for a file",
        "--- f.txt\n+++ f.txt\n@@ -1 +1 @@\n-old\n+a\n--- f.txt\n+++ f.txt\n@@ -1 +1 @@\n-old\n+b\n",
    ),
]


@pytest.mark.parametrize(("what", "diff"), REFUSED, ids=[what for what, _ in REFUSED])
async def test_what_is_not_a_plain_diff_of_regular_files_is_refused_whole(patched: Road, what: str, diff: str) -> None:
    before = state(patched.root)
    assert await patched.code("file.patch", input={"patch": diff}) == "invalid_request"
    assert state(patched.root) == before and not (patched.root / "ln").is_symlink()


@pytest.mark.parametrize("name", ["../out.txt", "/etc/x", "a/../../x", ".git/hooks/x", ".env", ".vscode/tasks.json"])
async def test_names_in_a_diff_are_judged_like_targets(patched: Road, name: str) -> None:
    before = state(patched.root)
    diff = f"--- f.txt\n+++ f.txt\n@@ -1 +1 @@\n-old\n+new\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+pwn\n"
    assert await patched.code("file.patch", input={"diff": diff}) in ("path_out_of_scope", "permission_denied")
    assert state(patched.root) == before and not (patched.root.parent / "out.txt").exists()


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"diff": "x", "edits": []},
        {"edits": []},
        {"diff": "x", "patch": "x"},
        {"edits": [{"oldText": "", "newText": "x"}]},
        {"edits": [{"oldText": "old", "newText": "x", "regex": True}]},
    ],
)
async def test_a_request_is_one_diff_or_some_edits(patched: Road, request_: dict[str, Any]) -> None:
    assert await patched.code("file.patch", "f.txt", input=request_) == "invalid_request"


async def test_the_target_beside_a_diff_is_the_file_it_changes(patched: Road) -> None:
    diff = "--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-old\n+new\n"
    assert await patched.code("file.patch", "lines.txt", input={"diff": diff}) == "invalid_request"
    await patched.data("file.patch", "f.txt", input={"diff": diff})


async def test_a_hundred_thousand_hunks_are_over_the_limit(patched: Road) -> None:
    hunks = "".join(f"@@ -{number} +{number} @@\n-line {number}\n+x\n" for number in range(1, 100_001))
    envelope = await patched.call("file.patch", input={"diff": f"--- lines.txt\n+++ lines.txt\n{hunks}"})
    assert envelope["error"]["code"] == "limit_exceeded" and envelope["durationMs"] < 30_000


async def test_a_hunk_that_almost_fits_everywhere_stays_quick(patched: Road) -> None:
    (patched.root / "same.txt").write_text("same\n" * 500_000)
    hunk = "--- same.txt\n+++ same.txt\n@@ -1,1001 +1,1000 @@\n" + " same\n" * 1000 + "-other\n"
    envelope = await patched.call("file.patch", input={"diff": hunk})
    assert envelope["error"]["code"] == "conflict" and envelope["durationMs"] < 30_000


TEXT = st.lists(st.sampled_from(["a", "b", "", "c d", "é", "--- x", "+++ y", "@@ -1 +1 @@", "\\ z"]), max_size=30)


@given(TEXT, TEXT, st.booleans(), st.booleans(), st.integers(0, 4))
@settings(max_examples=200, deadline=None)
def test_applying_the_difference_of_two_texts_gives_the_second(
    old: list[str], new: list[str], old_ends: bool, new_ends: bool, context: int
) -> None:
    before = "\n".join(old) + ("\n" if old and old_ends else "")
    after = "\n".join(new) + ("\n" if new and new_ends else "")
    diff = unified(before, after, context)
    if not diff:
        return
    patch = parse_diff(diff)[0]
    try:
        assert apply_hunks(before, patch, "f") == after
    except LinkError:
        # Without context an insertion can only stand where it says; everything else must apply.
        assert context == 0


def unified(before: str, after: str, context: int) -> str:
    lines = []
    for line in difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/f", "b/f", n=context):
        lines.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(lines)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_what_git_diff_writes_applies(patched: Road, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(patched.root, work)

    def run(*words: str) -> str:
        return subprocess.run(["git", "-C", str(work), *words], check=True, capture_output=True, text=True).stdout

    run("init", "-q")
    run("add", ".")
    run("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x")
    (work / "f.txt").write_text("new\nno end")
    (work / "lines.txt").rename(work / "moved é.txt")
    (work / "made").mkdir()
    (work / "made" / "a b.txt").write_text("x\n")
    (work / "empty").touch()
    run("add", "-A")
    diff = run("diff", "--cached", "-M", "HEAD")
    shutil.rmtree(work / ".git")
    await patched.data("file.patch", input={"diff": diff})
    assert state(patched.root) == state(work)


async def test_edits_that_multiply_are_refused_before_they_grow(patched: Road) -> None:
    """Four replacements of one letter by a thousand would otherwise make a terabyte of one byte."""
    many = [{"oldText": "a", "newText": "a" * 1000, "replaceAll": True}] * 4
    (patched.root / "one.txt").write_text("a")
    refused = await patched.call("file.patch", "one.txt", input={"edits": many})
    assert refused["error"]["code"] == "limit_exceeded"
    assert (patched.root / "one.txt").read_text() == "a"


async def test_edits_of_many_files_that_multiply_are_refused_together(patched: Road) -> None:
    names = [f"part{number}.txt" for number in range(8)]
    for name in names:
        (patched.root / name).write_text("a" * 1000)
    grow = {"oldText": "a", "newText": "b" * 19_000, "replaceAll": True}
    refused = await patched.call("file.patch", input={"edits": [{"path": name, **grow} for name in names]})
    assert refused["error"]["code"] == "limit_exceeded"
    assert {(patched.root / name).read_text() for name in names} == {"a" * 1000}
