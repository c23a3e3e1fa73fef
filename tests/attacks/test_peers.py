"""A paired computer that turned: what it sends over its own, proven link reaches no further than what it was given."""

import os
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.facets.files import Change, Copy, Move, Remove, Restore, Write
from computer_linker.computer.remote.computer import RemoteComputer
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.errors import InvalidRequest, LinkError, PermissionDenied
from computer_linker.model.geometry import Rect
from computer_linker.model.paths import PathRules, RootedPath
from support.pair import Pair, open_pair
from support.road import computer_scope, folder_scope

pytestmark = pytest.mark.anyio


def _at(*parts: str) -> RootedPath:
    return RootedPath("app", parts, PathRules())


async def _open() -> None:
    return None


async def _far(pair: Pair) -> RemoteComputer:
    await pair.paired("app")
    return await pair.routes.remote_computer("laptop")


async def _refused(far: RemoteComputer, change: Change) -> None:
    with pytest.raises(LinkError):
        await far.files.rehearse([change])
    with pytest.raises(LinkError):
        await far.files.change([change], gate=_open)


@pytest.mark.parametrize("way", ["absolute", "upwards", "state", "here"])
async def test_nothing_but_what_was_kept_is_put_back(tmp_path: Path, way: str) -> None:
    """`restore` moves a file of the undo folder: its name must not lead to any other file of the machine."""
    secret = tmp_path / "laptop" / "secret"
    async with open_pair(tmp_path) as pair:
        secret.write_text("not yours")
        far = await _far(pair)
        kept = {
            "absolute": str(secret), "upwards": "../../../secret", "state": "../../config.json", "here": ".",
        }[way]  # fmt: skip
        await _refused(far, Restore(_at("taken.txt"), kept))
        assert secret.read_text() == "not yours"
        assert os.listdir(pair.laptop.root) == ["a.txt"]


async def test_what_another_scope_replaced_is_not_put_back_into_this_one(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "p.txt").write_text("of another scope")
    scopes = [folder_scope(tmp_path / "laptop" / "root"), folder_scope(private, "private")]
    async with open_pair(tmp_path, scopes) as pair:
        far = await _far(pair)
        written = await pair.laptop.call("file.write", "p.txt", scope="private", input={"content": "new"})
        assert written["ok"]
        (kept,) = os.listdir(pair.laptop.home / "undo" / "kept")
        await _refused(far, Restore(_at("taken.txt"), kept))
        assert os.listdir(pair.laptop.root) == ["a.txt"]
        undone = await pair.laptop.call(
            "file.undo", None, scope="private", input={"operationId": written["operationId"]}
        )
        assert undone["ok"]


async def test_what_a_protected_file_was_does_not_come_back_under_a_plain_name(tmp_path: Path) -> None:
    async with open_pair(tmp_path) as pair:
        far = await _far(pair)
        written = await pair.laptop.call("file.write", "a.txt", scope="app", input={"content": "new"})
        assert written["ok"]
        (kept,) = os.listdir(pair.laptop.home / "undo" / "kept")
        await _refused(far, Restore(_at("b.txt"), kept))
        assert os.listdir(pair.laptop.root) == ["a.txt"]


@pytest.mark.parametrize("make", [
    lambda: Remove(_at(), recursive=True),
    lambda: Move(_at(), _at("inside")),
    lambda: Copy(_at(), _at("inside")),
    lambda: Write(_at(), b"x"),
    lambda: Move(_at("a.txt"), _at(), overwrite=True),
])  # fmt: skip
async def test_the_root_itself_is_nobodys_to_change(tmp_path: Path, make: Any) -> None:
    async with open_pair(tmp_path) as pair:
        await _refused(await _far(pair), make())
        assert os.listdir(pair.laptop.root) == ["a.txt"]


async def test_keys_that_reach_past_applications_are_refused_from_afar_too(tmp_path: Path) -> None:
    near = SimulatedComputer()
    window = near.world.open("editor", "Notes", Rect(x=100, y=100, width=400, height=300))
    async with open_pair(tmp_path, [computer_scope()], near) as pair:
        await pair.paired("desk")
        far = await pair.routes.remote_computer("laptop")
        for keys in (
            ["ctrl", "alt", "f1"],
            ["super"],
            ["super", "r"],
            ["alt", "f2"],
            ["print_screen"],
            ["ctrl", "alt", "t"],
        ):
            with pytest.raises((PermissionDenied, InvalidRequest)):
                await far.keyboard.press(keys)
        with pytest.raises(InvalidRequest):
            await far.keyboard.press(["a"], count=1_000_000)
        assert window.log == []
        await far.keyboard.press(["ctrl", "a"])
        assert window.log != []
