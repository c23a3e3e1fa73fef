"""batch.run: every step is checked and recorded by itself, a failure stops it, and a step can use an earlier result."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.road import Road, folder_scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    scopes = [folder_scope(tmp_path / "root"), {**folder_scope(tmp_path / "root", "look"), "capabilities": ["fs:read"]}]
    async with Road.open(tmp_path, scopes) as opened:
        (opened.root / "a.txt").write_text("alpha\n")
        yield opened


async def run(road: Road, *steps: dict[str, Any], **options: Any) -> dict[str, Any]:
    return await road.call("batch.run", input={"operations": list(steps)}, options=options or None)


def step(op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
    return {"op": op, **({} if target is None else {"target": target}), **parts}


async def events(road: Road) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await road.data("history.timeline", options={"limit": 100}))["events"]
    return found


async def test_each_step_is_checked_and_recorded_by_itself(road: Road) -> None:
    told = await run(
        road,
        step("file.stat", "a.txt"),
        step("file.stat", "../x"),
        step("batch.walk", "a.txt"),
        step("file.stat", "a.txt", scope="other"),
        step("file.create", "made", scope="look", input={"content": ""}),
        stopOnError=False,
    )
    codes = [result.get("error", {}).get("code") for result in told["data"]["results"]]
    assert codes == [None, "path_out_of_scope", "unknown_operation", "unknown_scope", "permission_denied"]
    assert told["ok"] is False and told["data"]["failed"] == 4
    assert (told["error"]["code"], told["error"]["details"]["step"]) == ("path_out_of_scope", 2)
    assert not (road.root / "made").exists()
    kept = {event["operationId"]: event for event in await events(road)}
    assert {result["operationId"] for result in told["data"]["results"][:2]} <= kept.keys()
    assert (kept[told["operationId"]]["ok"], kept[told["operationId"]]["errorCode"]) == (False, "path_out_of_scope")
    assert kept[told["operationId"]]["decision"] == "allow", "the batch itself was not refused"


async def test_it_stops_at_the_first_failure_unless_told_otherwise(road: Road) -> None:
    told = await run(road, step("file.stat", "missing"), step("file.mkdir", "made"))
    assert not told["ok"] and len(told["data"]["results"]) == told["data"]["failed"] == 1
    assert told["error"]["code"] == "not_found" and "Step 1 of 2 (file.stat)" in told["error"]["message"]
    assert not (road.root / "made").exists()
    told = await run(road, step("file.stat", "missing"), step("file.mkdir", "made"), stopOnError=False)
    assert not told["ok"] and [result["ok"] for result in told["data"]["results"]] == [False, True]
    assert (road.root / "made").is_dir()


async def test_without_a_failure_it_is_ok(road: Road) -> None:
    told = await run(road, step("file.stat", "a.txt"))
    assert told["ok"] and told["data"]["failed"] == 0 and "error" not in told


@pytest.mark.parametrize("items", [[{"op": "batch.run"}], [{"op": "batch"}], [{"op": "file.stat"}] * 26, []])
async def test_it_is_bounded_and_holds_no_batch(road: Road, items: list[dict[str, str]]) -> None:
    assert await road.code("batch.run", input={"operations": items}) == "invalid_request"


async def test_find_read_and_patch_are_one_call(road: Road) -> None:
    (road.root / "deep").mkdir()
    (road.root / "deep" / "needle.py").write_text("x = 1\n")
    told = await run(
        road,
        step("file.find", ".", input={"pattern": "**/needle.py"}),
        step("file.read", "$1.files.0"),
        step(
            "file.patch",
            "$1.files[0]",
            input={"edits": [{"oldText": "$2.content", "newText": "x = 2\n"}]},
            options={"ifSha256": "$2.sha256"},
        ),
        step("file.read", "$3.files.0.path"),
        step("file.undo", input={"operationId": "$3.operationId"}),
    )
    assert told["ok"], told
    assert told["data"]["results"][3]["data"]["content"] == "x = 2\n"
    assert (road.root / "deep" / "needle.py").read_text() == "x = 1\n"


async def test_the_path_of_a_search_is_that_of_the_only_file_it_found(road: Road) -> None:
    (road.root / "deep").mkdir()
    (road.root / "deep" / "needle.py").write_text("x = 1\ny = 1\n")
    told = await run(
        road,
        step("file.find", ".", input={"pattern": "needle.py"}),
        step("file.read", "$1.path"),
        step("file.search", ".", input={"query": "= 1"}),
        step("file.read", "$3.path"),
    )
    assert told["ok"], told
    assert [each["data"]["content"] for each in told["data"]["results"][1::2]] == ["x = 1\ny = 1\n"] * 2
    (road.root / "other.py").write_text("z = 1\n")
    several = await run(
        road, step("file.find", ".", input={"pattern": "*.py"}), step("file.delete", "$1.path"), step("file.list")
    )
    assert several["error"]["code"] == "invalid_request" and "files.0" in several["error"]["message"]
    assert (road.root / "other.py").exists() and (road.root / "deep" / "needle.py").exists()


async def test_what_is_put_in_keeps_its_type(road: Road) -> None:
    (road.root / "lines").write_text("1\n2\n3\n4\n")
    told = await run(
        road,
        step("file.read", "lines", options={"lineCount": 2}),
        step("file.read", "$1.path", options={"startLine": "$1.nextLine"}),
        step("file.find", ".", input={"pattern": "*"}),
        step("file.read_many", input={"paths": "$3.files"}),
        step("file.read", "$1.data.path"),
    )
    assert told["ok"], told
    assert told["data"]["results"][1]["data"]["content"] == "3\n4\n"
    assert {file["path"] for file in told["data"]["results"][3]["data"]["files"]} == {"a.txt", "lines"}


@pytest.mark.parametrize(
    "reference",
    [
        "$2.path", "$3.path", "$9.path", "$25.path", "$1.nothing", "$1.path.more", "$1.path.0", "$1.size.x",
        "$1.__class__", "$1.data.nothing", "$1.warnings.0", "$1.error.code", "$1.path[0]",
    ],
)  # fmt: skip
async def test_a_reference_to_nothing_stops_the_batch_before_its_step(road: Road, reference: str) -> None:
    told = await run(
        road,
        step("file.stat", "a.txt"),
        step("file.create", "made", input={"content": reference}),
        step("file.mkdir", "after"),
        stopOnError=False,
    )
    assert [result["ok"] for result in told["data"]["results"]] == [True, False], told
    refused = told["data"]["results"][1]
    assert refused["error"]["code"] == told["error"]["code"] == "invalid_request"
    assert refused["error"]["details"]["reference"] == reference
    assert not (road.root / "made").exists() and not (road.root / "after").exists()
    kept = {event["operationId"]: event for event in await events(road)}
    assert (kept[refused["operationId"]]["op"], kept[refused["operationId"]]["errorCode"]) == (
        "file.create",
        "invalid_request",
    )


async def test_a_failed_step_lends_nothing(road: Road) -> None:
    told = await run(
        road,
        step("file.stat", "missing"),
        step("file.create", "made", input={"content": "$1.path"}),
        stopOnError=False,
    )
    assert [result["error"]["code"] for result in told["data"]["results"]] == ["not_found", "invalid_request"]
    assert not (road.root / "made").exists()


@pytest.mark.parametrize(
    ("content", "written"),
    [
        ("$$1.path", "$1.path"), ("$$$1.path", "$$1.path"), ("$1.50", "$1.50"), ("$HOME", "$HOME"), ("$", "$"),
        ("costs $1.path", "costs $1.path"), ("$1.path ", "$1.path "), ("$0.path", "$0.path"), ("$1", "$1"), ("$1[0]", "$1[0]"),
        ("$100.path", "$100.path"), ("$1.path\n", "$1.path\n"), ("$$HOME", "$$HOME"), ("$\uff11.path", "$\uff11.path"),
    ],
)  # fmt: skip
async def test_other_text_stays_as_it_is(road: Road, content: str, written: str) -> None:
    told = await run(road, step("file.stat", "a.txt"), step("file.create", "made", input={"content": content}))
    assert told["ok"], told
    assert (road.root / "made").read_text() == written


async def test_what_a_reference_brings_is_checked_as_if_it_had_been_sent(road: Road) -> None:
    """A file's content cannot lead a later step out of the scope, nor choose its operation or scope."""
    (road.root / "lure").write_text("../outside")
    told = await run(road, step("file.read", "lure"), step("file.read", "$1.content"))
    assert told["error"]["code"] == "path_out_of_scope"
    (road.root / "op").write_text("file.delete")
    told = await run(road, step("file.read", "op"), {"op": "$1.content", "target": "a.txt"})
    assert told["error"]["code"] == "unknown_operation" and (road.root / "a.txt").exists()
    told = await run(road, step("file.read", "op"), step("file.stat", "a.txt", scope="$1.content"))
    assert told["error"]["code"] == "unknown_scope"


async def test_references_bring_in_a_bounded_amount(road: Road) -> None:
    (road.root / "big").write_text("a" * 1_000_000)
    edits = [{"oldText": "x", "newText": "$1.content"}] * 40
    told = await run(
        road,
        step("file.read", "big", options={"maxBytes": 1_000_000}),
        step("file.patch", "a.txt", input={"edits": edits}),
    )
    assert told["data"]["results"][1]["error"]["code"] == "invalid_request", told["error"]
    assert "at most" in told["error"]["message"] and (road.root / "a.txt").read_text() == "alpha\n"
