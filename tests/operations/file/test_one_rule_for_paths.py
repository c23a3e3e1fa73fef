"""One rule for paths: relative to the root or to `options.cwd`, absolute, or `name:path`; every answer's path can be sent back."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.repositories import git, repository
from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

PATH_FIELDS = frozenset({"path", "from", "to", "renamedFrom", "destination"})
LISTS = {
    "file.find": "files",
    "git.stage": "staged",
    "git.unstage": "staged",
    "git.commit": "files",
    "git.diff": "files",
}


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root, docs = tmp_path / "root", tmp_path / "docs"
    for place in (root, docs):
        repository(place)
        (place / "sub" / "deep").mkdir(parents=True)
        (place / "sub" / "a.py").write_text("def needle():\n    return 1\n")
        (place / "sub" / "deep" / "b.py").write_text("needle = 2\n")
        git(place, "add", "-A")
        git(place, "commit", "-qm", "one")
        (place / "sub" / "a.py").write_text("def needle():\n    return 2\n")
        (place / "sub" / "new.txt").write_text("new\n")
    scope = {**folder_scope(root, allowedCommands=["*"]), "roots": [str(root), str(docs)]}
    async with Road.open(tmp_path, [scope]) as opened:
        yield opened


OBSERVING: list[tuple[str, str, dict[str, Any]]] = [
    ("file.stat", "a.py", {}),
    ("file.list", ".", {}),
    ("file.tree", ".", {}),
    ("file.read", "a.py", {}),
    ("file.read_many", "", {"input": {"paths": ["a.py", "deep/b.py"]}}),
    ("file.find", ".", {"input": {"pattern": "**/*.py"}}),
    ("file.search", ".", {"input": {"query": "needle"}}),
    ("file.search", "a.py", {"input": {"query": "needle"}}),
    ("code.search_symbols", ".", {"input": {"query": "needle"}}),
    ("code.outline", "a.py", {}),
    ("git.status", ".", {}),
    ("git.changes", ".", {}),
    ("git.diff", ".", {"input": {"paths": ["a.py"]}}),
]
CHANGING: list[tuple[str, str, dict[str, Any]]] = [
    ("file.write", "a.py", {"input": {"content": "x\n"}}),
    ("file.create", "made.txt", {"input": {"content": "x\n"}}),
    ("file.mkdir", "made", {}),
    ("file.patch", "a.py", {"input": {"edits": [{"oldText": "return 2", "newText": "return 3"}]}}),
    ("file.patch", "", {"input": {"edits": [{"path": "a.py", "oldText": "return 2", "newText": "return 3"}]}}),
    ("file.patch", "", {"input": {"diff": "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n def needle():\n-    return 2\n+    return 4\n"}}),
    ("file.move", "new.txt", {"input": {"destination": "deep/moved.txt"}}),
    ("file.copy", "a.py", {"input": {"destination": "copied.py"}}),
    ("git.stage", ".", {"input": {"paths": ["new.txt", "a.py"]}}),
]  # fmt: skip


def paths_in(op: str, value: Any) -> Iterator[str]:
    """Every path in an answer's data."""
    if isinstance(value, list):
        for each in value:
            yield from paths_in(op, each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name in PATH_FIELDS and isinstance(each, str):
                yield each
            elif name == LISTS.get(op) and isinstance(each, list):
                yield from (one for one in each if isinstance(one, str))
                yield from paths_in(op, [one for one in each if isinstance(one, dict)])
            else:
                yield from paths_in(op, each)


def places(road: Road) -> dict[str, tuple[str, Path]]:
    """Ways to name the folder `sub`, each with the folder it is."""
    docs = road.root.parent / "docs"
    return {
        "sub": ("sub", road.root / "sub"),
        "./sub/": ("./sub/", road.root / "sub"),
        "root:sub": ("root:sub", road.root / "sub"),
        "docs:sub": ("docs:sub", docs / "sub"),
        "absolute": (str(docs / "sub"), docs / "sub"),
        "number": ("@1/sub", docs / "sub"),
        "climbing": ("sub/deep/..", road.root / "sub"),
    }


async def sent_back(road: Road, path: str, folder: Path, **options: Any) -> None:
    """The path of an answer, sent as it is, with the same options and with none."""
    seen = [await road.call("file.stat", path, options=given) for given in ({}, options)]
    codes = {envelope.get("error", {}).get("code") for envelope in seen}
    assert codes in ({None}, {"not_found"}), (path, seen)
    real = {(await road.call("file.stat", path, options=given)).get("data", {}).get("size") for given in ({}, options)}
    assert len(real) == 1, (path, options)
    name = path.rpartition(":")[2]
    assert (folder.parent / name).exists() or codes == {"not_found"}, (path, folder)


@pytest.mark.parametrize("way", ["sub", "./sub/", "root:sub", "docs:sub", "absolute", "number", "climbing"])
async def test_paths_start_from_the_folder_and_can_be_sent_back(road: Road, way: str) -> None:
    cwd, folder = places(road)[way]
    for op, target, parts in OBSERVING:
        envelope = await road.call(op, target or None, options={"cwd": cwd}, **parts)
        assert envelope["ok"], (op, envelope)
        found = set(paths_in(op, envelope["data"]))
        assert found or op in ("file.tree",), (op, envelope["data"])
        for path in found:
            await sent_back(road, path, folder, cwd=cwd)


@pytest.mark.parametrize(("op", "target", "parts"), CHANGING)
async def test_changes_start_from_the_folder_too(road: Road, op: str, target: str, parts: dict[str, Any]) -> None:
    docs = road.root.parent / "docs" / "sub"
    before = {path: path.stat().st_mtime_ns for path in road.root.rglob("*") if ".git" not in path.parts}
    envelope = await road.call(op, target or None, options={"cwd": "docs:sub"}, **parts)
    assert envelope["ok"], envelope
    for path in paths_in(op, envelope["data"]):
        await sent_back(road, path, docs, cwd="docs:sub")
    assert {path: path.stat().st_mtime_ns for path in road.root.rglob("*") if ".git" not in path.parts} == before
    if op.startswith("file."):
        undone = await road.call(
            "file.undo",
            None if op == "file.copy" else target or None,
            input={"last": True},
            options={"cwd": "docs:sub"},
        )
        if target:
            assert undone["ok"], undone
            for path in paths_in("file.undo", undone["data"]):
                await sent_back(road, path, docs, cwd="docs:sub")


async def test_a_command_starts_in_the_folder(road: Road) -> None:
    docs = road.root.parent / "docs"
    for target, cwd, wanted in ((None, "docs:sub", docs / "sub"), ("deep", "sub", road.root / "sub" / "deep")):
        ran = await road.data("command.run", target, input={"command": ["pwd"]}, options={"cwd": cwd})
        assert ran["stdout"].strip() == str(wanted)
    ran = await road.data(
        "command.run", None, input={"command": ["cat", "../../root/sub/a.py"]}, options={"cwd": "docs:sub"}
    )
    assert "needle" in ran["stdout"], "the other folders of the scope are there as without it"


@pytest.mark.parametrize(
    ("target", "cwd", "code"),
    [
        ("../../x", "sub", "path_out_of_scope"), ("../..", "docs:sub", "path_out_of_scope"), ("a.py", "..", "path_out_of_scope"),
        ("a.py", "/etc", "path_out_of_scope"), ("/etc/passwd", "sub", "path_out_of_scope"), ("a.py", "gone", "not_found"),
        ("a.py", "sub/a.py", "not_found"), ("a.py", "", "invalid_request"), ("a.py", 5, "invalid_request"), ("a.py", None, "invalid_request"),
        ("a.py", ["sub"], "invalid_request"), ("config", ".git", "permission_denied"), ("a\0", "sub", "invalid_request"),
        ("a.py", "su\0b", "invalid_request"), ("a.py", "x" * 5000, "invalid_request"), (".env", "sub", "permission_denied"),
    ],
)  # fmt: skip
async def test_a_folder_leads_nowhere_else(road: Road, target: str, cwd: Any, code: str) -> None:
    found = await road.code("file.write" if code == "permission_denied" else "file.read", target, options={"cwd": cwd},
                            **({"input": {"content": "x"}} if code == "permission_denied" else {}))  # fmt: skip
    assert found == code or (
        code == "not_found" and found in ("not_found", "path_out_of_scope", "execution_failed", "invalid_request")
    )


async def test_a_refusal_names_the_forms_that_work(road: Road) -> None:
    envelope = await road.call("file.read", "/etc/passwd")
    assert envelope["error"]["details"]["rootNames"] == ["root", "docs"]
    assert "docs:PATH" in envelope["error"]["message"]
    envelope = await road.call("file.read", "../../x", options={"cwd": "sub"})
    assert "relative to options.cwd 'sub'" in envelope["error"]["message"]


@pytest.mark.parametrize("op", ["command.list", "history.last", "batch.run", "computer.explain"])
async def test_an_operation_without_paths_takes_no_folder(road: Road, op: str) -> None:
    given = {"batch.run": {"operations": [{"op": "file.stat", "target": "."}]}, "computer.explain": {"op": "file.stat"}}
    assert await road.code(op, input=given.get(op), options={"cwd": "sub"}) == "invalid_request"
