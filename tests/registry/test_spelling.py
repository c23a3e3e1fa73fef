"""Other servers' spellings: read where they can mean one thing only, audited as what ran; else refused with a correction."""

import time
from pathlib import Path
from typing import Any

import pytest

from support.road import LOCAL, Road


async def send(road: Road, **request: Any) -> dict[str, Any]:
    reply = await road.app.dispatcher.call_wire({"scope": "app", **request}, LOCAL)
    return reply.envelope


async def events(road: Road) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await road.data("history.last"))["events"]
    return found


@pytest.fixture
async def road(tmp_path: Path) -> Any:
    async with Road.open(tmp_path) as made:
        (made.root / "notes.txt").write_text("one\ntwo\n")
        yield made


READ_AS: list[tuple[dict[str, Any], str]] = [
    ({"op": "file.read", "path": "notes.txt"}, "`path` was read as `target`."),
    ({"op": "file.read", "file_path": "notes.txt"}, "`file_path` was read as `target`."),
    ({"op": "file.read", "input": {"path": "notes.txt"}}, "`path` was read as `target`."),
    ({"op": "file.read", "target": "notes.txt", "options": {"tail": 1}}, "`tail` was read as `tailLines`."),
    ({"op": "file.search", "target": ".", "input": {"pattern": "two"}}, "`pattern` was read as `query`."),
    ({"op": "command.run", "input": {"cmd": "echo hi"}}, "`cmd` was read as `command`."),
    ({"op": "command.run", "input": {"argv": ["echo", "hi"]}}, "`argv` was read as `command`."),
    ({"op": "command.run", "input": {"command": "echo hi", "cwd": "."}}, "`cwd` was read as `target`."),
    ({"op": "file.write", "target": "new.txt", "input": {"text": "x"}}, "`text` was read as `content`."),
    (
        {"op": "file.patch", "target": "notes.txt", "input": {"edits": [{"old_string": "one", "newText": "1"}]}},
        "`edits[0].old_string` was read as `oldText`.",
    ),
    (
        {"op": "file.patch", "target": "notes.txt", "input": {"oldText": "one", "newText": "1"}},
        "`oldText` was read as `edits[0].oldText`.",
    ),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("request_", "warning"), READ_AS, ids=[warning for _, warning in READ_AS])
async def test_a_common_spelling_is_read_with_a_warning(road: Road, request_: dict[str, Any], warning: str) -> None:
    envelope = await send(road, **request_)
    assert envelope["ok"], envelope["error"]
    assert warning in envelope["warnings"]


@pytest.mark.anyio
async def test_an_edit_without_its_list_is_one_edit(road: Road) -> None:
    envelope = await send(road, op="file.patch", path="notes.txt", old_string="one", new_string="1")
    assert envelope["ok"], envelope["error"]
    assert (road.root / "notes.txt").read_text() == "1\ntwo\n"


@pytest.mark.anyio
async def test_the_history_has_what_ran(road: Road) -> None:
    await send(road, op="file.write", file_path="made.txt", input={"contents": "x"})
    event = next(one for one in await events(road) if one["op"] == "file.write")
    assert event["target"] == "made.txt" and event["ok"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"op": "file.read", "target": "notes.txt", "options": {"startline": 2}}, {"options": {"startLine": 2}}),
        ({"op": "file.read", "target": "notes.txt", "options": {"start_line": 2}}, {"options": {"startLine": 2}}),
        ({"op": "file.read", "target": "notes.txt", "input": {"startLine": 2}}, {"options": {"startLine": 2}}),
        ({"op": "file.search", "query": "two"}, {"input": {"query": "two"}}),
        ({"op": "file.write", "target": "new.txt", "content": "x"}, {"input": {"content": "x"}}),
        (
            {"op": "file.read", "input": {"path": "notes.txt", "offset": 2, "limit": 1}},
            {"target": "notes.txt", "options": {"startLine": 2, "lineCount": 1}},
        ),
        (
            {"op": "file.read", "target": "notes.txt", "options": {"end_line": 2, "start_line": 2}},
            {"options": {"startLine": 2, "lineCount": 1}},
        ),
        ({"op": "file.find", "input": {"name": "*.txt"}}, {"input": {"pattern": "*.txt"}}),
        ({"op": "file.find", "target": "*.txt"}, {"input": {"pattern": "*.txt"}}),
        (
            {"op": "file.search", "input": {"pattern": "two"}, "options": {"include": "*.txt"}},
            {"input": {"query": "two"}, "options": {"glob": "*.txt"}},
        ),
        (
            {"op": "file.search", "input": {"pattern": "two"}, "options": {"context": 1}},
            {"input": {"query": "two"}, "options": {"contextBefore": 1, "contextAfter": 1}},
        ),
        ({"op": "file.read_many", "input": {"files": ["notes.txt"]}}, {"input": {"paths": ["notes.txt"]}}),
        ({"op": "command.run", "target": "echo hi"}, {"input": {"command": "echo hi"}}),
        ({"op": "command.run", "input": {"command": "echo", "args": ["hi"]}}, {"input": {"command": ["echo", "hi"]}}),
        (
            {"op": "command.run", "input": {"command": "echo hi", "timeout_ms": 5000}},
            {"options": {"timeoutSeconds": 5}},
        ),
    ],
)
async def test_a_misspelt_or_misplaced_field_is_refused_with_the_corrected_request(
    road: Road, wrong: dict[str, Any], right: dict[str, Any]
) -> None:
    envelope = await send(road, **wrong)
    details = envelope["error"]["details"]
    assert envelope["error"]["code"] == "invalid_request" and details["signature"].startswith(f"{wrong['op']}(")
    assert details["corrected"].items() >= {"scope": "app", "op": wrong["op"], **right}.items()
    assert not (road.root / "new.txt").exists()
    again = await road.app.dispatcher.call_wire(details["corrected"], LOCAL)
    assert again.envelope["ok"] and again.envelope["warnings"] == []


@pytest.mark.anyio
@pytest.mark.parametrize("items", [[1], ["file.stat"], [None, {"op": "file.stat"}]])
async def test_items_that_are_no_objects_are_refused(road: Road, items: list[Any]) -> None:
    envelope = await send(road, op="batch.run", input={"operations": items})
    assert envelope["error"]["code"] == "invalid_request"


@pytest.mark.anyio
async def test_a_long_list_in_another_spelling_costs_little(road: Road) -> None:
    edits = [{"old_string": "a", "new_string": "b"}] * 20_000
    began = time.process_time()
    envelope = await send(road, op="file.patch", target="notes.txt", input={"edits": edits})
    assert envelope["error"]["code"] == "invalid_request" and time.process_time() - began < 2


@pytest.mark.anyio
@pytest.mark.parametrize(
    "wrong",
    [
        {"op": "file.read", "target": "notes.txt", "path": "other.txt"},
        {"op": "file.read", "target": "notes.txt", "cwd": "."},
        {"op": "file.write", "target": "new.txt", "input": {"content": "x", "text": "y"}},
        {"op": "file.write", "target": "new.txt", "input": {"content": "x"}, "options": {"colour": "red"}},
        {"op": "git.worktree_create", "path": "elsewhere", "input": {"path": "tree", "branch": "b"}, "target": "."},
    ],
)
async def test_what_could_mean_two_things_or_nothing_is_refused_and_nothing_happens(
    road: Road, wrong: dict[str, Any]
) -> None:
    before = sorted(path.name for path in road.root.iterdir())
    envelope = await send(road, **wrong)
    assert envelope["error"]["code"] == "invalid_request" and "corrected" not in envelope["error"]["details"]
    assert sorted(path.name for path in road.root.iterdir()) == before
    assert any(one["errorCode"] == "invalid_request" for one in await events(road))


@pytest.mark.anyio
async def test_the_field_that_is_unknown_is_named_not_its_neighbour_in_another_spelling(road: Road) -> None:
    error = (await send(road, op="file.search", input={"pattern": "two"}, options={"colour": "red"}))["error"]
    assert "`options.colour`" in error["message"] and "query" not in error["message"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (
            {"op": "document.edit", "target": "a.docx", "input": {"edits": [{"oldText": "a", "newText": "b"}]}},
            {"input": {"texts": [{"oldText": "a", "newText": "b"}]}},
        ),
        (
            {"op": "code.rename", "target": "a.py", "input": {"name": "one", "newName": "two"}},
            {"input": {"symbol": "one", "newName": "two"}},
        ),
    ],
)
async def test_a_name_that_another_operation_has_is_corrected(
    road: Road, wrong: dict[str, Any], right: dict[str, Any]
) -> None:
    corrected = (await send(road, **wrong))["error"]["details"]["corrected"]
    assert corrected == {"scope": "app", **wrong, **right}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("file.edit", "file.patch"),
        ("file.grep", "file.search"),
        ("edit_file", "file.patch"),
        ("file.raed", "file.read"),
        ("bash", "command.run"),
        ("shell.exec", "command.run"),
        ("cat", "file.read"),
        ("git.add", "git.stage"),
    ],
)
async def test_an_unknown_operation_names_the_one_that_is_meant_with_its_signature(
    road: Road, name: str, meant: str
) -> None:
    error = (await send(road, op=name, target="notes.txt"))["error"]
    assert error["code"] == "unknown_operation" and error["details"]["similar"][0] == meant
    assert error["details"]["signature"].startswith(f"{meant}(")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("file.reed", "file.read"),
        ("file.wirte", "file.write"),
        ("git.statsu", "git.status"),
        ("comand.run", "command.run"),
    ],
)
@pytest.mark.anyio
async def test_the_nearest_name_is_suggested_first(road: Road, wrong: str, right: str) -> None:
    """Found: `file.reed` was answered with `file.tree` first."""
    envelope = await send(road, op=wrong, target="notes.txt")
    assert envelope["error"]["code"] == "unknown_operation"
    assert envelope["error"]["details"]["similar"][0] == right
