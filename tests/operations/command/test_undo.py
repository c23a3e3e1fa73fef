"""file.undo of a command that changed the folder itself."""

import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.road import Road, folder_scope
from support.waiting import until, until_awaited

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


async def test_a_program_in_the_background_is_taken_back_once_it_has_ended(road: Road) -> None:
    before = state(road.root)
    line: dict[str, Any] = {"input": {"command": ["sh", "-c", "read x; rm a.txt; echo $x > new"]}}
    started = await road.call("command.start", ".", **line, options={"undo": True})
    process = started["data"]["processId"]
    assert (await undone(road, started))["error"]["code"] == "not_found" and state(road.root) == before
    await road.data("command.send", process, input={"text": "go\n"})
    await road.data("command.read", process, options={"waitSeconds": 50, "untilEnd": True})
    assert (road.root / "new").read_text() == "go\n" and not (road.root / "a.txt").exists()

    async def is_undone() -> bool:
        return bool((await undone(road, started))["ok"])

    await until_awaited(is_undone)
    assert state(road.root) == before


async def test_nothing_is_copied_where_it_is_not_wanted_or_the_folder_is_large(road: Road) -> None:
    ran = await run(road, "echo 2 > a.txt", undo=False)
    assert ran["data"]["undoable"] is None and not (road.home / "before").exists()
    many = road.root / "many"
    many.mkdir()
    for number in range(2001):
        (many / str(number)).touch()
    ran = await run(road, "echo 3 > a.txt")
    refused = (await undone(road, ran))["error"]
    assert ran["data"]["undoable"] is False and refused["code"] == "not_found" and "undo: true" in refused["message"]
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


@contextlib.asynccontextmanager
async def running(road: Road, end: str) -> AsyncIterator[tuple[list[dict[str, Any]], Callable[[Path], None]]]:
    """A command that has begun and then runs `end`, once it reads something: its answer comes, and what gives it that."""
    answers: list[dict[str, Any]] = []
    os.mkfifo(road.root / "fifo")

    async def first() -> None:
        answers.append(await run(road, f"touch started; read line < fifo; {end}", undo=True))

    def go_on(root: Path) -> None:
        (root / "fifo").write_text("go on\n")

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await until((road.root / "started").exists)
        yield answers, go_on


async def test_a_command_that_came_and_went_meanwhile_is_said_to_be_taken_back_too(road: Road) -> None:
    async with running(road, "echo 1 > first") as (answers, go_on):
        second = await run(road, "echo 2 > second")
        go_on(road.root)
    for each in (second, *answers):
        assert any("Another command ran" in warning for warning in each["warnings"]), each
    alone = await run(road, "echo 3 > third")
    assert alone["data"]["undoable"] is True and alone["warnings"] == second["warnings"][:-1]


async def test_a_command_whose_folder_was_moved_away_still_answers(road: Road) -> None:
    moved = road.root.with_name("moved")
    async with running(road, "echo $line") as (answers, go_on):
        road.root.rename(moved)
        go_on(moved)
    (answer,) = answers
    assert answer["ok"] and answer["data"]["stdout"] == "go on\n" and answer["data"]["undoable"] is False, answer
    assert any("undoable: false" in warning for warning in answer["warnings"])


def settled_copy(road: Road, name: str) -> Path:
    """Where the copy of a file is kept that has not changed for a while."""
    found = (road.root / name).stat()
    store = road.home / "before" / sha256(os.fsencode(road.root)).hexdigest()[:32]
    return store / f"{found.st_dev:x}-{found.st_ino:x}-{found.st_ctime_ns:x}-{found.st_size:x}"


async def test_a_copy_that_was_interrupted_does_not_turn_undo_off(road: Road) -> None:
    copy = settled_copy(road, "t")
    await run(road, "echo 2 > a.txt")
    await until(lambda: time.time_ns() - (road.root / "t").stat().st_ctime_ns > 10**9)
    copy.unlink(missing_ok=True)
    copy.with_name(f"{copy.name}.draft").write_text("ha")
    ran = await run(road, "echo 3 > a.txt; echo u > t", undo=True)
    assert ran["data"]["undoable"] is True, ran
    assert (await undone(road, ran))["ok"] and (road.root / "t").read_text() == "t\n"


async def test_an_image_that_fails_says_why_and_leaves_no_command_counted(road: Road) -> None:
    copy = settled_copy(road, "t")
    await run(road, "echo 2 > a.txt")
    await until(lambda: time.time_ns() - (road.root / "t").stat().st_ctime_ns > 10**9)
    copy.unlink(missing_ok=True)
    blocked = copy.with_name(f"{copy.name}.draft")
    blocked.mkdir()
    ran = await run(road, "echo 3 > a.txt", undo=True)
    (warning,) = (each for each in ran["warnings"] if "undoable: false" in each)
    assert ran["ok"] and "too large" not in warning and "Is a directory" in warning, warning
    blocked.rmdir()
    ran = await run(road, "echo 4 > a.txt", undo=True)
    assert ran["data"]["undoable"] is True and not any("Another command" in each for each in ran["warnings"])
