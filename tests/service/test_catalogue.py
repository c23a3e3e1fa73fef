"""get_computer_info: signatures within their budgets, schemas on request, and no call that delays another."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from computer_linker.registry.reference import whole_catalog
from computer_linker.registry.schema import signature
from computer_linker.service.introspection import ServiceIntrospection
from computer_linker.transports.mcp.fast_path import FastPath, Negotiated, ToolCall
from computer_linker.transports.mcp.profiles import profile_of
from computer_linker.transports.mcp.schemas import INFO_PARTS
from computer_linker.transports.mcp.tools import Tools
from support.road import LOCAL, Road, folder_scope

PLAIN = ["fs:read", "fs:write", "search:read", "git:read", "git:write"]


async def info(road: Road, **arguments: Any) -> dict[str, Any]:
    return (await ServiceIntrospection(road.app).computer_info(arguments, LOCAL)).envelope


def length_of(signatures: dict[str, list[str]]) -> int:
    return sum(len(line) + 1 for lines in signatures.values() for line in lines)


def test_a_signature_shows_what_may_be_left_out_and_the_defaults() -> None:
    catalog = whole_catalog()
    shown = signature(catalog.find("file.read"))
    assert (
        shown.startswith("file.read(target, options{startLine?, lineCount?, tailLines?,") and "maxBytes=65536" in shown
    )
    assert "→ content, sha256?, startLine?, nextLine?" in shown
    assert signature(catalog.find("file.search")).startswith("file.search(target?, input{query}, options{glob?, ")
    assert "edits[{path?, oldText, newText, replaceAll?}]?" in signature(catalog.find("file.patch"))
    assert "gitignore=true" in signature(catalog.find("file.tree"))


def test_every_signature_together_fits_twelve_thousand_characters() -> None:
    assert sum(len(signature(op)) + 1 for op in whole_catalog().operations.values()) <= 12_000


@pytest.mark.anyio
async def test_the_default_answer_has_the_signatures_of_what_is_allowed_and_little_else(tmp_path: Path) -> None:
    plain = {**folder_scope(tmp_path / "root"), "capabilities": PLAIN}
    async with Road.open(tmp_path, [plain]) as road:
        answer = await info(road)
        names = [line.partition("(")[0] for lines in answer["signatures"].values() for line in lines]
        assert sorted(names) == sorted(answer["scopes"][0]["allowedOperations"])
        assert length_of(answer["signatures"]) <= 6_000
        assert set(answer["signatures"]) >= {"file", "git", "code"} and "screen" not in answer["signatures"]


@pytest.mark.anyio
async def test_a_scope_without_rights_answers_empty_lists(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [{**folder_scope(tmp_path / "root"), "capabilities": []}]) as road:
        scope = (await info(road))["scopes"][0]
        assert scope["capabilities"] == [] and isinstance(scope["allowedOperations"], list)


@pytest.mark.anyio
async def test_the_rest_of_the_default_answer_is_short_and_names_nothing_absent(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root")]) as road:
        answer = await info(road)
        rest = {name: value for name, value in answer.items() if name != "signatures"}
        assert len(to_json(rest)) <= 2_500
        whole = await info(road, include=["tools", "operations"])
        absent = {name for name, program in whole["tools"].items() if not program["available"]}
        assert not absent & set(answer["tools"])
        # What is absent is not called usable, and the full answer has the reason.
        allowed = {name for scope in answer["scopes"] for name in scope["allowedOperations"]}
        assert not allowed & set(whole["capabilities"])
        assert all(fact["reason"] for fact in whole["capabilities"].values())


@pytest.mark.anyio
async def test_named_operations_answer_their_schemas_and_an_example_alone(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        answer = await info(road, operations=["file.patch", "git.*"])
        assert set(answer) == {"operations"}
        names = {op["name"] for op in answer["operations"]}
        assert (
            "file.patch" in names and "git.diff" in names and all(name.startswith(("file.", "git.")) for name in names)
        )
        patch = next(op for op in answer["operations"] if op["name"] == "file.patch")
        assert "edits" in patch["input"]["properties"] and patch["example"]["target"] and patch["signature"]
        refused = await info(road, operations=["file.raed"])
        assert refused["error"]["code"] == "invalid_request" and "file.read" in refused["error"]["details"]["similar"]


@pytest.mark.anyio
async def test_building_the_catalogue_gives_way_to_other_calls(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)  # one turn of the loop: what is counted
                turns += 1

        counting = asyncio.create_task(count_turns())
        answer = await info(road, include=["operations"])
        counting.cancel()
        assert turns > len(answer["operations"]) / 2


@pytest.mark.anyio
@pytest.mark.parametrize("client", ["some script", "codex"])
async def test_no_introspection_call_takes_more_than_five_milliseconds(tmp_path: Path, client: str) -> None:
    """From the call to the bytes for the wire, as processor time, so that a loaded machine does not count."""
    async with Road.open(tmp_path) as road:
        path = FastPath(Tools(road.app.dispatcher, ServiceIntrospection(road.app)))
        known = Negotiated(era="handshake", client=client, profile=profile_of(client))
        asked: list[dict[str, Any]] = [{}, {"operations": ["git.*"]}, *({"include": [part]} for part in INFO_PARTS)]
        for arguments in asked:
            call = ToolCall("get_computer_info", arguments)
            # What is built once is built now.
            await path.run(call, known, LOCAL, None, None)
            began = time.process_time()
            for _ in range(20):
                await path.run(call, known, LOCAL, None, None)
            assert (time.process_time() - began) / 20 < 0.005, arguments
