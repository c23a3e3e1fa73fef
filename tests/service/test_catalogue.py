"""get_computer_info: signatures within their budgets, schemas on request, and no call that delays another."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from computer_linker.model.info import INFO_PARTS
from computer_linker.registry.reference import whole_catalog
from computer_linker.registry.schema import signature
from computer_linker.service.catalogue import FILE_NAME, Catalogue
from computer_linker.service.introspection import ServiceIntrospection
from computer_linker.service.programs import InstalledPrograms
from computer_linker.transports.mcp.fast_path import FastPath, Negotiated, ToolCall
from computer_linker.transports.mcp.profiles import profile_of
from computer_linker.transports.mcp.tools import Tools
from support.lines import stdio
from support.road import LOCAL, Road, folder_scope
from support.service import serving, wait_for
from support.waiting import until

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
    scopes = [folder_scope(tmp_path / name, name) for name in ("one", "two", "three")]
    for scope in scopes:
        Path(scope["roots"][0]).mkdir()
    async with Road.open(tmp_path, scopes) as road:
        path = FastPath(Tools(road.app.dispatcher, ServiceIntrospection(road.app)))
        known = Negotiated(era="handshake", client=client, profile=profile_of(client))
        asked: list[dict[str, Any]] = [{}, {"operations": ["git.*"]}, {"include": list(INFO_PARTS)}]
        asked += [{"include": [part]} for part in INFO_PARTS]
        for arguments in asked:
            call = ToolCall("get_computer_info", arguments)
            # What is built once is built now.
            await path.run(call, known, LOCAL, None, None)
            began = time.process_time()
            for _ in range(20):
                await path.run(call, known, LOCAL, None, None)
            assert (time.process_time() - began) / 20 < 0.005, arguments


@pytest.mark.anyio
async def test_what_a_service_built_is_read_by_the_next_one_of_the_same_source(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        await road.app.services.use(Catalogue).warm()
        built, whole = await info(road), await info(road, include=["operations"])
    kept = tmp_path / "home" / FILE_NAME
    assert kept.exists()
    async with Road.open(tmp_path) as road:
        imported = len(loaded_operations())
        assert await info(road) == built
        assert await info(road, include=["operations"]) == whole
        assert (await info(road, operations=["grep"]))["operations"][0]["name"] == "file.search"
        assert len(loaded_operations()) == imported


@pytest.mark.anyio
async def test_what_was_built_of_another_source_is_soon_built_anew(tmp_path: Path) -> None:
    """It is used until the source was compared, which takes longer than an answer."""
    async with Road.open(tmp_path) as road:
        await road.app.services.use(Catalogue).warm()
        built, whole = await info(road), await info(road, include=["operations"])
    kept = tmp_path / "home" / FILE_NAME
    current = kept.read_bytes()
    head, *rows = current.split(b"\n")
    about = json.loads(head)
    read = next(row for row in about["facts"] if row["name"] == "file.read")
    read["signature"] = "of another source"
    about["facts"].append({**read, "name": "file.gone", "names": ["file.gone"], "is_checked": True})
    kept.write_bytes(b"\n".join([json.dumps({**about, "stamp": "another"}).encode(), *rows, rows[0]]))
    async with Road.open(tmp_path) as road:
        catalogue = road.app.services.use(Catalogue)
        await catalogue.load()
        assert catalogue.signatures(["file.read"]) == {"file": ["of another source"]}
        assert "file.gone" in catalogue.usable(road.app.config.scopes), "what is gone is no fault"
        await until(lambda: kept.read_bytes() == current)
        assert await info(road) == built
        assert await info(road, include=["operations"]) == whole


@pytest.mark.anyio
@pytest.mark.parametrize("content", [b"", b"{}", b"[]\n", b'{"stamp": "x", "facts": [{"name": 1}]}', b"\xff"])
async def test_a_broken_kept_catalogue_is_built_anew(tmp_path: Path, content: bytes) -> None:
    async with Road.open(tmp_path) as road:
        built = await info(road)
    (tmp_path / "home" / FILE_NAME).write_bytes(content)
    async with Road.open(tmp_path) as road:
        assert await info(road) == built


def loaded_operations() -> list[str]:
    return [name for name in sys.modules if name.startswith("computer_linker.operations.")]


@pytest.mark.anyio
async def test_a_change_of_what_was_looked_at_is_seen_in_the_next_answer(tmp_path: Path) -> None:
    """Findings are kept, and never longer than they are true."""
    async with Road.open(tmp_path) as road:

        async def warnings() -> list[str]:
            found: list[str] = (await info(road, include=["status"]))["status"]["warnings"]
            return found

        usual = await warnings()
        road.root.chmod(0o777)
        assert any("can change" in warning for warning in await warnings())
        road.root.chmod(0o755)
        moved = road.root.rename(road.root.with_name("elsewhere"))
        assert any("does not exist" in warning for warning in await warnings())
        moved.rename(road.root)
        assert await warnings() == usual


def test_a_program_that_is_installed_is_found_without_a_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    programs = InstalledPrograms()
    assert "pnpm" not in programs.names()
    (tmp_path / "pnpm").write_text("#!/bin/sh\n")
    (tmp_path / "pnpm").chmod(0o755)
    wait_for(lambda: "pnpm" in programs.names())
    assert programs.tools([])["pnpm"].path == str(tmp_path / "pnpm")
    (tmp_path / "pnpm").unlink()
    wait_for(lambda: "pnpm" not in programs.names())
    assert not programs.tools([])["pnpm"].available


def test_a_program_that_did_not_change_is_asked_for_its_version_once(tmp_path: Path) -> None:
    asked, program = tmp_path / "asked", tmp_path / "pnpm"
    program.write_text(f"#!/bin/sh\necho asked >> {asked}\necho 9.1.2\n")
    program.chmod(0o755)
    code = (
        "import sys, pathlib; from computer_linker.service.programs import InstalledPrograms;"
        "print(InstalledPrograms(pathlib.Path(sys.argv[1])).tools([])['pnpm'].version)"
    )

    def version() -> str:
        command = [sys.executable, "-c", code, str(tmp_path)]
        return subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60).stdout

    assert (version(), version(), asked.read_text()) == ("9.1.2\n", "9.1.2\n", "asked\n")
    program.write_text("#!/bin/sh\necho 9.1.3\n")
    assert version() == "9.1.3\n"
    next(tmp_path.glob("programs-*.json")).write_text('{"pnpm": 1}')
    assert version() == "9.1.3\n"


def test_every_part_alone_is_answered_over_stdio(tmp_path: Path) -> None:
    with serving(tmp_path) as service, stdio(service.home) as lines:
        for part in INFO_PARTS:
            assert lines.tool("get_computer_info", include=[part])["isError"] is False, part


@pytest.mark.anyio
async def test_forty_who_ask_for_the_programs_at_once_start_each_program_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, started = tmp_path / "programs", tmp_path / "started"
    programs.mkdir()
    (programs / "rg").write_text(f"#!/bin/sh\necho started >> {started}\necho ripgrep 14.1.0\n")
    (programs / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    async with Road.open(tmp_path) as road:
        answers = await asyncio.gather(*(info(road, include=["tools"]) for _ in range(40)))
        assert {answer["tools"]["rg"]["version"] for answer in answers} == {"14.1.0"}
        assert started.read_text().splitlines() == ["started"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "asked",
    [
        {"include": ["identity"] * 1000},
        {"include": ["everything"]},
        {"include": "scopes"},
        {"include": [["scopes"]]},
        {"include": ["scopes", None]},
        {"operations": ["a" * 101]},
        {"operations": ["file.*"] * 51},
        {"operations": [""]},
        {"operations": ["[" * 100]},
        {"operations": ["\u202efile.read"]},
        {"operations": {"file.read": 1}},
        {"scope": "app"},
    ],
)
async def test_a_malformed_question_is_refused_in_few_words(tmp_path: Path, asked: dict[str, Any]) -> None:
    async with Road.open(tmp_path) as road:
        answer = await info(road, **asked)
        assert answer["ok"] is False and answer["error"]["code"] == "invalid_request"
        assert len(to_json(answer)) < 2_000, "nothing of a long question is repeated"


@pytest.mark.anyio
async def test_patterns_of_many_stars_cost_little(tmp_path: Path) -> None:
    patterns = [f"{'*?' * 40}{chr(97 + number % 26)}z{number}" for number in range(50)]
    async with Road.open(tmp_path) as road:
        await info(road)
        began = time.process_time()
        assert (await info(road, operations=patterns))["error"]["code"] == "invalid_request"
        assert (await info(road, operations=[*["*" * 100] * 49, "*.*"]))["operations"]
        assert time.process_time() - began < 5
