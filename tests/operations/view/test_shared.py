"""Views that several calls share: the steps of a batch, the calls of a session, and package scripts."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.errors import Conflict
from computer_linker.providers.views.store import NewView, Views
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("a\n")
    (root / "Makefile").write_text("made:\n\techo made > made.txt\n")
    (root / "package.json").write_text(json.dumps({"scripts": {"build": "echo built > built.txt"}}))
    async with Road.open(tmp_path, [folder_scope(root, allowedCommands=["*"])]) as opened:
        yield opened


def shell(line: str) -> dict[str, Any]:
    return {"op": "command.run", "target": ".", "input": {"command": ["sh", "-c", line]}}


async def test_the_steps_of_a_batch_share_one_view(road: Road) -> None:
    steps = [
        shell("echo b > b.txt"),
        {"op": "package.run", "input": {"script": "made"}},
        shell("cat b.txt made.txt a.txt"),
    ]
    ran = await road.data("batch.run", input={"operations": steps}, options={"view": True})
    first, second, third = (step["data"] for step in ran["results"])
    assert third["stdout"] == "b\nmade\na\n"
    assert first["view"]["viewId"] == second["view"]["viewId"] == third["view"]["viewId"]
    assert third["view"]["added"] == 2 and sorted(path.name for path in road.root.iterdir()) == [
        "Makefile", "a.txt", "package.json",
    ]  # fmt: skip
    again = await road.data("batch.run", input={"operations": [shell("ls")]}, options={"view": True})
    assert "b.txt" not in again["results"][0]["data"]["stdout"]
    await road.data("view.keep", third["view"]["viewId"])
    assert (road.root / "b.txt").exists() and (road.root / "made.txt").exists()


async def test_a_batch_on_a_view_changes_nothing_elsewhere(road: Road) -> None:
    steps = [shell("echo b > b.txt"), {"op": "file.write", "target": "a.txt", "input": {"content": "x"}}]
    refused = await road.call("batch.run", input={"operations": steps}, options={"view": True})
    assert refused["error"]["code"] == "invalid_request", refused
    assert (road.root / "a.txt").read_text() == "a\n" and (await road.data("view.list"))["views"] == []


async def test_a_session_has_one_view_of_its_own(road: Road) -> None:
    async def run(line: str, **parts: Any) -> dict[str, Any]:
        call = shell(line)
        return await road.data(call["op"], ".", input=call["input"], options={"view": "session"}, **parts)

    first = await run("echo 1 > one")
    second = await run("cat one; echo 2 > two")
    assert second["stdout"] == "1\n" and second["view"]["viewId"] == first["view"]["viewId"]
    other = replace(LOCAL, session="session-2", connection="connection-2")
    assert "one" not in (await run("ls", principal=other))["stdout"]
    await road.data("view.drop", first["view"]["viewId"])
    third = await run("ls")
    assert third["view"]["viewId"] != first["view"]["viewId"] and "one" not in third["stdout"]
    assert not (road.root / "one").exists()


@pytest.mark.parametrize("op", ["package.run", "package.start"])
async def test_package_scripts_run_on_a_view(road: Road, op: str) -> None:
    ran = await road.data(op, ".", input={"script": "made"}, options={"view": True})
    view_id = ran["viewId"] if op == "package.start" else ran["view"]["viewId"]
    if op == "package.start":
        await road.data("command.read", ran["processId"], options={"waitSeconds": 30, "untilEnd": True})
    shown = await road.data("view.show", view_id)
    assert [each["path"] for each in shown["changes"]] == ["made.txt"] and not (road.root / "made.txt").exists()


@pytest.mark.parametrize("kind", ["overlay", "copy"])
async def test_first_calls_at_the_same_time_share_one_view(road: Road, kind: str) -> None:
    if kind == "copy":
        road.app.services.provide(Views, Views(road.home / "views", probe=lambda _state, _roots: False))
    answers: list[dict[str, Any]] = []

    async def run(line: str) -> None:
        call = shell(line)
        answers.append(await road.call(call["op"], ".", input=call["input"], options={"view": "session"}))

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(run, f"echo {number} > file{number}")
    # Two programs in one view would not see each other's changes, so the others are refused.
    assert {each["error"]["code"] for each in answers if not each["ok"]} <= {"conflict"}
    assert any(each["ok"] for each in answers) and len((await road.data("view.list"))["views"]) == 1


async def test_a_view_that_is_being_copied_is_not_made_a_second_time(tmp_path: Path) -> None:
    views = Views(tmp_path / "views")
    new = NewView("app", LOCAL, [str(tmp_path)], "command.run", "true", "session-1", "1", "closed")

    def fill(_place: Path) -> None:
        with pytest.raises(Conflict):
            views.create(new, fill)

    made = views.create(new, fill)
    assert made.kind == "copy" and views.create(new).id == made.id
    assert views.create(replace(new, shared="")).id != made.id


@pytest.mark.parametrize("view", [False, "session", "batch-1"])
async def test_a_step_cannot_leave_the_view_of_its_batch(road: Road, view: Any) -> None:
    steps = [shell("echo 1 > one"), {**shell("echo 2 > two"), "options": {"view": view}}]
    refused = await road.call("batch.run", input={"operations": steps}, options={"view": True})
    assert refused["error"]["code"] == "invalid_request", refused
    assert not (road.root / "two").exists() and (await road.data("view.list"))["views"] == []


async def test_the_view_of_a_batch_is_known_inside_one_alone(road: Road) -> None:
    call = shell("echo 1 > one")
    assert await road.code(call["op"], ".", input=call["input"], options={"view": "batch"}) == "not_found"
    assert not (road.root / "one").exists()
