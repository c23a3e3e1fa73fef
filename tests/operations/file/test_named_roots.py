"""Paths of a scope with several folders: by the folder's name, by number, and absolute; what leaves a root stays refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.service.introspection import ServiceIntrospection
from support.repositories import git, repository
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def several(tmp_path: Path) -> AsyncIterator[Road]:
    """A scope with `root`, `docs`, another folder called `docs`, and `docs/inner`; beside them `out` with a secret."""
    places = [tmp_path / "root", tmp_path / "docs", tmp_path / "other" / "docs", tmp_path / "docs" / "inner"]
    for place in (*places, tmp_path / "out"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "a.txt").write_text(f"{place.parent.name}/{place.name}\n")
    (tmp_path / "root" / "docs:b.txt").write_text("colon\n")
    scope = {**folder_scope(tmp_path / "root"), "roots": [str(place) for place in places]}
    async with Road.open(tmp_path, [scope]) as road:
        yield road


async def test_roots_have_names_in_get_computer_info(several: Road) -> None:
    """Point 000-039: a client learns how to name the second root."""
    info = await ServiceIntrospection(several.app).computer_info({"include": ["scopes"]}, LOCAL)
    assert info.envelope["scopes"][0]["rootNames"] == ["root", "docs", "docs-2", "inner"]


@pytest.mark.parametrize(
    ("target", "shown", "content"),
    [
        ("a.txt", "a.txt", "root"),
        ("root:a.txt", "root:a.txt", "root"),
        ("docs:a.txt", "docs:a.txt", "docs"),
        ("docs:/a.txt", "docs:a.txt", "docs"),
        ("docs-2:a.txt", "docs-2:a.txt", "other/docs"),
        ("@1/a.txt", "@1/a.txt", "docs"),
        ("./docs:b.txt", "docs:b.txt", "colon"),
        ("$/root/a.txt", "a.txt", "root"),
        ("$/docs/a.txt", "docs:a.txt", "docs"),
        ("$/docs/inner/a.txt", "inner:a.txt", "docs/inner"),
        ("$/docs/./x/../a.txt", "docs:a.txt", "docs"),
    ],
)
async def test_a_root_is_named_or_absolute(several: Road, target: str, shown: str, content: str) -> None:
    """Point 000-039, and the contract's first line on operations: relative, absolute inside a root, or `name:path`."""
    asked = target.replace("$", str(several.root.parent))
    data = await several.data("file.read", asked)
    assert data["path"] == shown and content in data["content"]
    if target != "./docs:b.txt":
        assert (await several.data("file.read", data["path"]))["content"] == data["content"], "it can be sent back"


@pytest.mark.parametrize(
    "target",
    [
        "$/out/a.txt", "$/rootx/a.txt", "$/root/../out/a.txt", "docs:../out/a.txt", "docs:inner/../../out/a.txt", "/etc/passwd",
        "$", "docs:..", "//etc/passwd", "$/root/../docs/a.txt",
    ],
)  # fmt: skip
async def test_what_lies_outside_every_root_stays_refused(several: Road, target: str) -> None:
    asked = target.replace("$", str(several.root.parent))
    assert await several.code("file.read", asked) == "path_out_of_scope"
    before = (several.root.parent / "out" / "a.txt").read_text()
    assert await several.code("file.write", asked, input={"content": "x"}) == "path_out_of_scope"
    assert (several.root.parent / "out" / "a.txt").read_text() == before


async def test_every_kind_of_operation_takes_a_named_root(several: Road) -> None:
    """Point 000-039: lists, trees, searches, changes, patches, commands and git, each with paths that can be sent back."""
    docs = several.root.parent / "docs"
    listed = await several.data("file.list", "docs:")
    assert {entry["path"] for entry in listed["entries"]} == {"docs:a.txt", "docs:inner"}
    tree = await several.data("file.tree", str(docs))
    assert [entry["path"] for entry in tree["entries"]] == ["docs:a.txt", "docs:inner", "docs:inner/a.txt"]
    found = await several.data("file.find", "docs:", input={"pattern": "*.txt"})
    assert "docs:inner/a.txt" in found["files"]
    matches = (await several.data("file.search", "docs:", input={"query": "docs/inner"}))["matches"]
    assert [match["path"] for match in matches] == ["docs:inner/a.txt"]
    many = await several.data("file.read_many", input={"paths": ["docs:a.txt", str(docs / "inner" / "a.txt")]})
    assert [file["path"] for file in many["files"]] == ["docs:a.txt", "inner:a.txt"]
    moved = await several.data("file.move", "a.txt", input={"destination": str(docs / "moved.txt")})
    assert moved == {"from": "a.txt", "to": "docs:moved.txt"} and (docs / "moved.txt").exists()
    edits: list[dict[str, Any]] = [{"path": "docs:moved.txt", "oldText": "root", "newText": "ROOT"}]
    await several.data("file.patch", input={"edits": edits})
    assert "ROOT" in (docs / "moved.txt").read_text()
    ran = await several.data("command.run", str(docs), input={"command": ["pwd"]})
    assert ran["stdout"].strip() == str(docs)


async def test_git_takes_a_named_root(several: Road) -> None:
    repository(several.root.parent / "other" / "docs")
    status = await several.data("git.status", "docs-2:")
    assert [entry["path"] for entry in status["entries"]] == ["docs-2:a.txt"]
    staged = await several.data("git.stage", "docs-2:", input={"paths": [status["entries"][0]["path"]]})
    assert staged["staged"] == ["docs-2:a.txt"]
    assert git(several.root.parent / "other" / "docs", "diff", "--cached", "--name-only") == "a.txt"
