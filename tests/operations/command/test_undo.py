"""file.undo of a command that changed the folder itself."""

import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    for folder in ("sub/deep", "gone/in", ".git"):
        (root / folder).mkdir(parents=True)
    for name, text in (("a.txt", "one\n"), ("sub/b.txt", "b\n"), ("gone/in/c", "c\n"), (".env", "S=1\n"), ("t", "t\n")):
        (root / name).write_text(text)
        os.utime(root / name, ns=(10**18, 10**18))
    (root / "bin").write_bytes(bytes(range(256)))
    (root / "link").symlink_to("a.txt")
    (root / "sub").chmod(0o750)
    os.setxattr(root / "a.txt", "user.mark", b"1")
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"])]) as opened:
        yield opened


def state(root: Path) -> dict[str, Any]:
    found = {}
    for path in sorted(root.rglob("*")):
        about = path.lstat()
        content: Any = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        when = None if path.is_dir() else about.st_mtime_ns
        marks = [] if path.is_symlink() else os.listxattr(path)
        found[str(path.relative_to(root))] = (oct(about.st_mode), when, content, marks)
    return found


async def run(road: Road, script: str, **options: Any) -> dict[str, Any]:
    return await road.call("command.run", ".", input={"command": ["sh", "-c", script]}, options=options)


async def undone(road: Road, ran: dict[str, Any]) -> dict[str, Any]:
    return await road.call("file.undo", input={"operationId": ran["operationId"]})


SCRIPTS = [
    "echo two >> a.txt",
    "rm -rf gone sub a.txt",
    "mkdir -p new/deep; echo x > new/deep/f; ln -s a.txt new/l; echo y > sub/y",
    "mv a.txt sub/moved; mv gone elsewhere",
    "rm a.txt; mkdir a.txt; echo x > a.txt/inside",
    "rm -r gone; echo file > gone",
    "ln -sfn sub/b.txt link; chmod 600 sub/b.txt; chmod 700 sub; touch -d 2001-01-01 t",
    "printf x | dd of=bin bs=1 seek=3 conv=notrunc 2>/dev/null; touch -r t bin",
    "sed -i s/one/1/ a.txt; sed -i s/b/B/ sub/b.txt",
    "rm link; cp a.txt link; find . -name b.txt -delete",
]


@pytest.mark.parametrize("script", SCRIPTS)
async def test_what_a_command_changed_is_taken_back(road: Road, script: str) -> None:
    before = state(road.root)
    ran = await run(road, script)
    assert ran["data"]["exitCode"] == 0 and ran["data"]["undoable"] is True, ran
    assert state(road.root) != before
    answer = await undone(road, ran)
    assert answer["ok"], answer
    assert state(road.root) == before
    again = await road.call("file.undo", input={"operationId": answer["operationId"]})
    assert again["ok"], again
    assert state(road.root) != before


async def test_a_command_that_changed_nothing_has_nothing_to_take_back(road: Road) -> None:
    ran = await run(road, "cat a.txt")
    assert ran["data"]["undoable"] is None
    assert (await undone(road, ran))["error"]["code"] == "not_found"
    quiet = await road.call("command.run", ".", input={"command": ["ls"]})
    assert quiet["data"]["undoable"] is None


async def test_what_changed_since_is_a_conflict_and_nothing_is_taken_back(road: Road) -> None:
    ran = await run(road, "echo two > a.txt; rm t")
    (road.root / "a.txt").write_text("by the owner\n")
    answer = await undone(road, ran)
    assert answer["error"]["code"] == "conflict" and (road.root / "a.txt").read_text() == "by the owner\n"
    assert not (road.root / "t").exists()


async def test_a_later_file_in_a_new_folder_is_not_removed_with_it(road: Road) -> None:
    ran = await run(road, "mkdir new; echo x > new/f")
    (road.root / "new/of-the-owner").write_text("mine\n")
    assert (await undone(road, ran))["ok"]
    assert (road.root / "new/of-the-owner").read_text() == "mine\n" and not (road.root / "new/f").exists()


async def test_nothing_is_copied_where_it_is_not_wanted_or_the_folder_is_large(road: Road) -> None:
    ran = await run(road, "echo 2 > a.txt", undo=False)
    assert ran["data"]["undoable"] is None and not (road.home / "before").exists()
    many = road.root / "many"
    many.mkdir()
    for number in range(2001):
        (many / str(number)).touch()
    ran = await run(road, "echo 3 > a.txt")
    assert ran["data"]["undoable"] is None and (await undone(road, ran))["error"]["code"] == "not_found"
    ran = await run(road, "echo 4 > a.txt", undo=True)
    assert ran["data"]["undoable"] is True
    assert (await undone(road, ran))["ok"] and (road.root / "a.txt").read_text() == "3\n"


async def test_copies_are_used_again_and_secrets_are_not_copied(road: Road) -> None:
    await run(road, "echo 2 > a.txt")
    (store,) = (road.home / "before").iterdir()
    first = {path.name for path in store.iterdir()}
    await run(road, "echo 3 > a.txt")
    second = {path.name for path in store.iterdir()}
    assert len(first) >= len(second) and not any(
        b"S=1" in path.read_bytes() for path in store.iterdir() if path.is_file()
    )


async def test_commands_at_the_same_time_are_said_to_be_taken_back_together(road: Road) -> None:
    answers: list[dict[str, Any]] = []

    async def one(script: str) -> None:
        answers.append(await run(road, script))

    fifo = road.root / "fifo"
    os.mkfifo(fifo)
    async with anyio.create_task_group() as group:
        group.start_soon(partial(one, "cat fifo > from-fifo"))
        group.start_soon(partial(one, "echo x > fifo"))
    assert all(each["ok"] for each in answers)
    assert any("Another command ran" in warning for each in answers for warning in each["warnings"])
