"""file.undo by path and `last`: the newest own change, further back each time, and nobody else's."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from support.road import LOCAL, OWNER, Road, folder_scope

pytestmark = pytest.mark.anyio
OTHER = replace(LOCAL, id="local:other", session="session-2", connection="connection-2")


async def write(road: Road, path: str, content: str, **parts: Any) -> str:
    done = await road.call("file.write", path, input={"content": content}, options={"createParents": True}, **parts)
    assert done["ok"], done
    operation_id: str = done["operationId"]
    return operation_id


async def test_last_goes_further_back_each_time(road: Road) -> None:
    for content in ("one", "two", "three"):
        await write(road, "a", content)
    await write(road, "b", "beside")
    seen = []
    for request in ({"operationId": "last"}, {"last": True}, {"last": True}):
        await road.data("file.undo", input=request)
        seen.append(((road.root / "a").read_text(), (road.root / "b").exists()))
    assert seen == [("three", False), ("two", False), ("one", False)]


async def test_last_goes_further_back_on_another_file_system_than_the_state(tmp_path: Path) -> None:
    """What was replaced is then stored as a copy, which comes back with another inode."""
    if Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm is not a file system of its own here")
    with TemporaryDirectory(dir="/dev/shm") as folder:
        scopes = [folder_scope(Path(folder))]
        async with Road.open(tmp_path, scopes) as road:
            for content in ("one", "two", "three"):
                await write(road, "a", content)
            await road.data("file.undo", input={"last": True})
        async with Road.open(tmp_path, scopes) as road:
            await road.data("file.undo", input={"last": True})
            assert (Path(folder) / "a").read_text() == "one"
            (Path(folder) / "a").write_text("new")
            assert await road.code("file.undo", input={"last": True}) == "conflict"
            assert (Path(folder) / "a").read_text() == "new"


async def test_an_undo_is_itself_taken_back_by_its_id(road: Road) -> None:
    await write(road, "a", "one")
    undone = await road.call("file.undo", input={"last": True})
    await road.data("file.undo", input={"operationId": undone["operationId"]})
    assert (road.root / "a").read_text() == "one"


async def test_a_path_names_the_newest_change_of_it(road: Road) -> None:
    await write(road, "a", "one")
    await write(road, "a", "two")
    await write(road, "b", "beside")
    dry = await road.data("file.undo", "a", options={"dryRun": True})
    assert dry["files"] == [{"path": "a", "action": "restored"}] and (road.root / "a").read_text() == "two"
    assert await road.data("file.undo", "a") == dry
    assert (road.root / "a").read_text() == "one" and (road.root / "b").read_text() == "beside"
    assert (await road.data("file.undo", "./a"))["files"] == [{"path": "a", "action": "removed"}]
    assert await road.code("file.undo", "a") == "not_found"


async def test_a_folder_stands_for_what_is_in_it_and_around_it(road: Road) -> None:
    (road.root / "d").mkdir()
    (road.root / "d" / "x").write_text("x")
    await write(road, "d/y", "y")
    await road.data("file.undo", "d")
    assert not (road.root / "d" / "y").exists()
    await road.data("file.delete", "d", options={"recursive": True})
    await road.data("file.undo", "d/x")
    assert (road.root / "d" / "x").read_text() == "x"
    await road.data("file.move", "d", input={"destination": "e"})
    await road.data("file.undo", "e/x")
    assert (road.root / "d" / "x").exists() and not (road.root / "e").exists()


async def test_a_parent_made_on_the_way_is_no_change_of_what_else_lies_in_it(road: Road) -> None:
    await write(road, "new/a", "a")
    assert await road.code("file.undo", "new/b") == "not_found"
    assert (road.root / "new" / "a").exists()


async def test_nothing_of_another_is_taken_back_but_by_the_owner(road: Road) -> None:
    operation_id = await write(road, "a", "mine")
    for target, request in (("a", None), (None, {"last": True}), (None, {"operationId": operation_id})):
        assert await road.code("file.undo", target, input=request, principal=OTHER) == "not_found"
    assert (road.root / "a").read_text() == "mine"
    # The owner's own `last` does not select it either; a path does.
    assert await road.code("file.undo", input={"last": True}, principal=OWNER) == "not_found"
    await road.data("file.undo", "a", principal=OWNER)
    assert not (road.root / "a").exists()


async def test_what_another_changed_since_is_a_conflict(road: Road) -> None:
    await write(road, "a", "mine")
    await write(road, "a", "theirs", principal=OTHER)
    assert await road.code("file.undo", "a") == "conflict"
    assert (road.root / "a").read_text() == "theirs"


@pytest.mark.parametrize(
    ("target", "given"),
    [
        (None, None), (None, {}), (None, {"last": False}), (None, {"operationId": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "last": True}),
        (None, {"nonsense": "a"}), (5, None), ("a\0b", None),
    ],
)  # fmt: skip
async def test_what_names_nothing_is_invalid(road: Road, target: Any, given: dict[str, Any] | None) -> None:
    await write(road, "a", "kept")
    assert await road.code("file.undo", target, input=given) == "invalid_request"
    assert (road.root / "a").read_text() == "kept"


async def test_an_id_and_a_path_must_belong_together(road: Road) -> None:
    operation_id = await write(road, "a", "kept")
    assert await road.code("file.undo", "b", input={"operationId": operation_id}) == "not_found"
    assert (road.root / "a").exists()
    await road.data("file.undo", "a", input={"operationId": operation_id})
    assert not (road.root / "a").exists()


async def test_a_path_out_of_the_scope_is_refused(road: Road, tmp_path: Path) -> None:
    await write(road, "a", "kept")
    assert await road.code("file.undo", "../home") == "path_out_of_scope"
    assert (road.root / "a").exists()


async def test_last_as_the_target_is_the_newest_change_unless_a_file_has_that_name(road: Road) -> None:
    await write(road, "a", "one")
    assert (await road.data("file.undo", "last"))["files"] == [{"path": "a", "action": "removed"}]
    await write(road, "last", "one")
    await write(road, "b", "beside")
    assert (await road.data("file.undo", "last"))["files"] == [{"path": "last", "action": "removed"}]
    assert (road.root / "b").exists()


async def test_the_end_of_an_id_names_an_operation_of_one_s_own(road: Road) -> None:
    mine, theirs = await write(road, "a", "one"), await write(road, "b", "two", principal=OTHER)
    assert await road.code("file.undo", input={"operationId": theirs[-7:]}) == "not_found"
    assert await road.code("file.undo", input={"operationId": mine[-6:]}) == "not_found"
    await road.data("file.undo", input={"operationId": mine[-7:]})
    assert not (road.root / "a").exists() and (road.root / "b").exists()
