"""A scope of two folders: what names a folder of it names no other, however its number is written."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio

CANARY = "CANARY-OUT-7f3a"


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    for name in ("root", "second", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "secret.txt").write_text(CANARY)
    (tmp_path / "second" / "here.txt").write_text("second")
    (tmp_path / "second" / ".env").write_text(CANARY)
    os.symlink(tmp_path / "out", tmp_path / "second" / "d")
    scope = {**folder_scope(tmp_path / "root"), "roots": [str(tmp_path / "root"), str(tmp_path / "second")]}
    async with Road.open(tmp_path, [scope]) as opened:
        yield opened


@pytest.mark.parametrize(
    "target",
    [
        "@1/../out/secret.txt", "@1/d/secret.txt", "@1//../../out/secret.txt", "@1/.env", "@2/here.txt", "@-1/here.txt",
        "@\u00b2/here.txt", "@\uff11/../out/secret.txt", "@\u0661/here.txt", "@1\u0000/here.txt", "@01/../out/secret.txt",
        "@" + "9" * 4000 + "/here.txt", "@" + "9" * 5000 + "/x", "@1", "@", "@/here.txt", "@1.0/here.txt", "x/@1/here.txt", "@0/../second/here.txt",
    ],
)  # fmt: skip
async def test_no_writing_of_a_number_leads_out(road: Road, target: str) -> None:
    for op, given in (("file.read", None), ("artifact.attach", None), ("file.write", {"content": "pwn"})):
        told = await road.call(op, target, input=given)
        assert CANARY not in str(told)
        assert told["ok"] or told["error"]["code"] != "execution_failed", told
    assert (road.root.parent / "out" / "secret.txt").read_text() == CANARY
    assert (road.root.parent / "second" / "here.txt").read_text() == "second"
    assert sorted(path.name for path in (road.root.parent / "out").iterdir()) == ["secret.txt"]


async def test_a_move_between_the_folders_keeps_the_rules_of_both(road: Road) -> None:
    assert await road.code("file.move", "@1/.env", input={"destination": "plain.txt"}) == "permission_denied"
    assert await road.code("file.copy", "@1/d/secret.txt", input={"destination": "plain.txt"}) == "path_out_of_scope"
    assert await road.code("file.copy", "@1/here.txt", input={"destination": "@1/.npmrc"}) == "permission_denied"
    assert [path.name for path in road.root.iterdir()] == []
    assert (await road.data("file.copy", "@1/here.txt", input={"destination": "plain.txt"}))["to"] == "plain.txt"
