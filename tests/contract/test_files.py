"""The promises of the files facet, on a real disk by both ways of opening and over a link."""

import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.facets.files import (
    Change,
    Copy,
    Files,
    Inverse,
    MakeFolder,
    Move,
    Remove,
    Restore,
    Window,
    Write,
)
from computer_linker.computer.local.portable.files import LocalFiles
from computer_linker.errors import LinkError
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.undo.steps import changes_of
from support.far import reached
from support.road import folder_scope

pytestmark = pytest.mark.anyio


@dataclass
class Shelf:
    """A keeper for one test."""

    folder: int
    room: int = 1 << 20
    steps: list[Inverse] = field(default_factory=list)

    def new_name(self) -> str:
        return secrets.token_hex(8)

    def begun(self, steps: list[Inverse], leftovers: list[dict[str, Any]]) -> None:
        self.steps = steps

    def done(self) -> None: ...

    def void(self) -> None: ...


@dataclass
class Disk:
    """A files facet with a root that the test can arrange."""

    files: Files
    root: Path
    shelf: int

    def at(self, name: str, **rules: Any) -> RootedPath:
        return RootedPath(str(self.root), tuple(part for part in name.split("/") if part), PathRules(**rules))

    def put(self, name: str, content: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(content)

    def link(self, name: str, target: str) -> None:
        (self.root / name).symlink_to(target)

    async def text(self, name: str) -> str:
        return (await self.files.read(self.at(name), Window(10_000))).content.decode()

    async def names(self) -> list[str]:
        tree = await self.files.tree(self.at(""), max_depth=9, max_entries=99, gitignore=False)
        return sorted(entry["path"] for entry in tree.entries)

    async def change(self, *changes: Change) -> Shelf:
        shelf = Shelf(self.shelf)
        await self.files.change(changes, gate=_open, keeper=shelf)
        return shelf

    async def code(self, *changes: Change) -> str:
        with pytest.raises(LinkError) as caught:
            await self.change(*changes)
        return caught.value.code

    async def undo(self, shelf: Shelf) -> Shelf:
        steps = changes_of(shelf.steps, lambda root, parts: RootedPath(root, tuple(parts), PathRules()))
        return await self.change(*steps)


async def _open() -> None:
    return None


@pytest.fixture(params=["kernel", "walk", "remote"])
async def disk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Disk]:
    root, kept = tmp_path / "root", tmp_path / "kept"
    root.mkdir()
    kept.mkdir()
    shelf = os.open(kept, os.O_RDONLY)
    if request.param == "remote":
        async with reached(request.getfixturevalue("far"), tmp_path, [folder_scope(root)]) as computer:
            yield Disk(computer.files, root, shelf)
    else:
        files = LocalFiles(by_kernel=request.param == "kernel")
        yield Disk(files, root, shelf)
        await files.aclose()
    os.close(shelf)


async def test_a_file_is_read_by_bytes_and_lines(disk: Disk) -> None:
    disk.put("d/a.txt", "one\ntwo\nthree")
    read = disk.files.read
    path = disk.at("d/a.txt")
    assert (await read(path, Window(100))).content == b"one\ntwo\nthree"
    part = await read(path, Window(100, start_line=2, line_count=1))
    assert (part.content, part.start_line, part.next_line) == (b"two\n", 2, 3)
    assert (await read(path, Window(100, tail_lines=1))).content == b"three"
    first = await read(path, Window(5))
    assert (first.content, first.next_line, first.next_byte) == (b"one\n", 2, 4)
    assert (await read(path, Window(3, start_byte=4, is_text=False))).content == b"two"
    assert (await disk.files.sha256(path)) == first.sha256


async def test_links_inside_are_followed_and_others_refused(disk: Disk) -> None:
    disk.put("a/f", "inside")
    disk.link("in", "a/f")
    disk.link("a/up", "../a")
    disk.link("out", "../../x")
    disk.link("abs", "/etc/passwd")
    disk.link("round", "round")
    assert await disk.text("in") == "inside"
    assert await disk.text("a/up/up/f") == "inside"
    assert (await disk.files.stat(disk.at("in"))).type == "symlink"
    for name in ("out", "abs", "round"):
        with pytest.raises(LinkError) as caught:
            await disk.text(name)
        assert caught.value.code == "path_out_of_scope"


async def test_a_link_to_a_closed_name_is_refused(disk: Disk) -> None:
    disk.put(".env", "SECRET")
    disk.link("plain.txt", ".env")
    with pytest.raises(LinkError) as caught:
        await disk.text("plain.txt")
    assert caught.value.code == "permission_denied"


async def test_changes_stand_or_fall_together(disk: Disk) -> None:
    disk.put("a", "old a")
    disk.put("b", "old b")
    bad = await disk.code(Write(disk.at("a"), b"new"), Remove(disk.at("b")), Remove(disk.at("gone")))
    assert bad == "not_found"
    assert (await disk.text("a"), await disk.text("b")) == ("old a", "old b")
    await disk.change(Write(disk.at("a"), b"new"), Remove(disk.at("b")))
    assert await disk.names() == ["a"] and await disk.text("a") == "new"


async def test_a_gate_that_fails_leaves_everything(disk: Disk) -> None:
    disk.put("a", "old")

    async def closed() -> None:
        raise LinkError("no")

    with pytest.raises(LinkError):
        await disk.files.change([Write(disk.at("a"), b"new")], gate=closed, keeper=Shelf(disk.shelf))
    assert await disk.text("a") == "old" and await disk.names() == ["a"]


@pytest.mark.parametrize(
    "changes",
    [
        ["write"], ["create"], ["mkdir"], ["remove"], ["remove folder"], ["move"], ["move over"], ["copy"], ["copy folder"],
        ["write", "create", "remove folder", "mkdir"],
    ],
    ids=lambda changes: "+".join(changes),
)  # fmt: skip
async def test_every_change_can_be_undone_and_redone(disk: Disk, changes: list[str]) -> None:
    disk.put("a", "old a")
    disk.put("b", "old b")
    disk.put("d/e/f", "deep")
    every: dict[str, Change] = {
        "write": Write(disk.at("a"), b"new"),
        "create": Write(disk.at("n/e/w"), b"new", must_be_new=True, create_parents=True),
        "mkdir": MakeFolder(disk.at("p/q"), parents=True),
        "remove": Remove(disk.at("a")),
        "remove folder": Remove(disk.at("d"), recursive=True),
        "move": Move(disk.at("a"), disk.at("m/a"), create_parents=True),
        "move over": Move(disk.at("a"), disk.at("b"), overwrite=True),
        "copy": Copy(disk.at("a"), disk.at("c")),
        "copy folder": Copy(disk.at("d"), disk.at("d2")),
    }
    before = await _picture(disk)
    shelf = await disk.change(*(every[name] for name in changes))
    after = await _picture(disk)
    assert after != before
    for expected in (before, after, before):
        shelf = await disk.undo(shelf)
        assert await _picture(disk) == expected


async def _picture(disk: Disk) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in await disk.names():
        stat = await disk.files.stat(disk.at(name))
        found[name] = await disk.text(name) if stat.type == "file" else stat.type
    return found


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda at: Write(at("d"), b"x"), "invalid_request"),
        (lambda at: Write(at("a"), b"x", must_be_new=True), "already_exists"),
        (lambda at: Write(at("n/x"), b"x"), "not_found"),
        (lambda at: Write(at("a"), b"x", if_sha256="0" * 64), "conflict"),
        (lambda at: Write(at(""), b"x"), "invalid_request"),
        (lambda at: Write(at(".git/config"), b"x", create_parents=True), "permission_denied"),
        (lambda at: Remove(at("d")), "invalid_request"),
        (lambda at: Remove(at(""), recursive=True), "invalid_request"),
        (lambda at: Move(at("gone"), at("x")), "not_found"),
        (lambda at: Move(at("a"), at("b")), "already_exists"),
        (lambda at: Move(at("d"), at("d/in")), "invalid_request"),
        (lambda at: Move(at("d"), at("b"), overwrite=True), "conflict"),
        (lambda at: Copy(at("a"), at("b")), "already_exists"),
        (lambda at: Copy(at("d"), at("d/in")), "invalid_request"),
        (lambda at: MakeFolder(at("a")), "already_exists"),
        (lambda at: MakeFolder(at("x/y")), "not_found"),
        (lambda at: Restore(at("a"), "nothing"), "not_found"),
    ],
)
async def test_refusals_have_their_code_and_change_nothing(disk: Disk, make: Any, code: str) -> None:
    disk.put("a", "A")
    disk.put("b", "B")
    disk.put("d/f", "F")
    before = await _picture(disk)
    assert await disk.code(make(disk.at)) == code
    assert await _picture(disk) == before


async def test_listings_are_by_name_in_pages(disk: Disk) -> None:
    for name in ("b", "a", ".h", "d/x"):
        disk.put(name, "1")
    first = await disk.files.list_folder(disk.at(""), max_results=2)
    assert ([entry["name"] for entry in first.entries], first.next_name) == ([".h", "a"], "a")
    rest = await disk.files.list_folder(disk.at(""), max_results=9, after="a")
    assert [(entry["name"], entry["type"]) for entry in rest.entries] == [("b", "file"), ("d", "directory")]
    with pytest.raises(LinkError) as caught:
        await disk.files.list_folder(disk.at("a"), max_results=9)
    assert caught.value.code == "not_found"


async def test_a_tree_obeys_gitignore_and_denied_names(disk: Disk) -> None:
    for name in (".gitignore", "a.log", "src/keep.py", "src/x.log", "secret/k"):
        disk.put(name, "*.log\n")
    path = disk.at("", denied=("secret",))
    tree = await disk.files.tree(path, max_depth=9, max_entries=99, gitignore=True)
    assert [entry["path"] for entry in tree.entries] == [".gitignore", "src", "src/keep.py"]
