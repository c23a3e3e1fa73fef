"""Cancelled in the middle: nothing is changed, nothing stays open, nothing is left behind."""

import os
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from computer_linker.computer.facets.files import Remove, Window, Write
from computer_linker.computer.local.portable.files import LocalFiles
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.undo.journal import UndoJournal
from support.road import Road
from support.waiting import until

pytestmark = pytest.mark.anyio


def at(root: Path, name: str) -> RootedPath:
    return RootedPath(str(root), tuple(name.split("/")), PathRules())


async def descriptors_settle(expected: int) -> int:
    """The number of open descriptors, once abandoned threads have let go (bounded)."""
    with suppress(AssertionError):
        await until(lambda: len(os.listdir("/proc/self/fd")) <= expected)
    return len(os.listdir("/proc/self/fd"))


async def test_a_cancelled_change_leaves_no_trace(tmp_path: Path) -> None:
    files = LocalFiles()
    (tmp_path / "f").write_text("old")
    await files.stat(at(tmp_path, "f"))
    journal = UndoJournal(tmp_path.parent / f"{tmp_path.name}-undo")
    before = len(os.listdir("/proc/self/fd"))

    async def never() -> None:
        await anyio.sleep_forever()

    for number in range(40):
        with anyio.move_on_after(number / 4000):
            await files.change(
                [Write(at(tmp_path, "f"), b"x" * 100_000), Write(at(tmp_path, "n/g"), b"y", create_parents=True)],
                gate=never,
                keeper=journal.begin(str(number), "app", "local:tester"),
            )
    assert await descriptors_settle(before) == before
    assert sorted(os.listdir(tmp_path)) == ["f"] and (tmp_path / "f").read_text() == "old"
    assert os.listdir(journal.kept.path) == []
    await files.aclose()


async def test_a_cancelled_read_closes_its_file(tmp_path: Path) -> None:
    files = LocalFiles()
    (tmp_path / "big").write_bytes(b"line\n" * 4_000_000)
    await files.stat(at(tmp_path, "big"))
    before = len(os.listdir("/proc/self/fd"))
    for number in range(30):
        with anyio.move_on_after(number / 10_000):
            await files.read(at(tmp_path, "big"), Window(1000, tail_lines=5))
    # More than the worker threads there are, so that some are cancelled before they begin.
    with anyio.move_on_after(0.002):
        async with anyio.create_task_group() as group:
            for _ in range(60):
                group.start_soon(files.sha256, at(tmp_path, "big"))
    assert await descriptors_settle(before) == before
    await files.aclose()


async def test_many_writers_of_one_file_leave_one_of_their_contents(road: Road) -> None:
    async with anyio.create_task_group() as group:
        for number in range(20):

            async def write(text: str = f"{number:03d}" * 5000) -> None:
                await road.data("file.write", "f", input={"content": text})

            group.start_soon(write)
    text = (road.root / "f").read_text()
    assert len(text) == 15_000 and len({text[at : at + 3] for at in range(0, 15_000, 3)}) == 1
    assert sorted(os.listdir(road.root)) == ["f"]


async def test_only_one_of_many_conditional_writes_wins(road: Road) -> None:
    first = await road.data("file.write", "f", input={"content": "first"})
    codes: list[str] = []

    async def write(number: int) -> None:
        envelope = await road.call(
            "file.write", "f", input={"content": f"{number}"}, options={"ifSha256": first["sha256"]}
        )
        codes.append("ok" if envelope["ok"] else envelope["error"]["code"])

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(write, number)
    assert sorted(codes) == ["conflict"] * 19 + ["ok"]


async def test_only_one_of_many_creators_wins(road: Road) -> None:
    codes: list[str] = []

    async def create(number: int) -> None:
        envelope = await road.call(
            "file.create", "d/f", input={"content": f"{number}"}, options={"createParents": True}
        )
        codes.append("ok" if envelope["ok"] else envelope["error"]["code"])

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(create, number)
    assert sorted(codes) == ["already_exists"] * 19 + ["ok"]


async def test_removing_many_files_is_one_step(tmp_path: Path) -> None:
    files = LocalFiles()
    for number in range(200):
        (tmp_path / "d" / f"{number % 7}").mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / f"{number % 7}" / f"{number}").touch()

    async def at_once() -> None:
        return None

    done = await files.change([Remove(at(tmp_path, "d"), recursive=True)], gate=at_once)
    assert done[0].entries == 208 and not done[0].is_undoable
    assert os.listdir(tmp_path) == []
    await files.aclose()
