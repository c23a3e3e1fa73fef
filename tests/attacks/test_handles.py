"""Handles belong to the principal that made them: another gets the answer of a handle that never was; the owner may use all."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.model.principal import Principal
from computer_linker.undo.journal import UndoJournal
from support.road import LOCAL, OWNER, Road

pytestmark = pytest.mark.anyio

OTHERS = {
    "another user": replace(LOCAL, id="local:other"),
    "owner token": Principal("owner", "owner_token", "http-1", "http-127.0.0.1"),
    "oauth": Principal("oauth:client", "oauth", "session-2", "connection-2", grants=frozenset({"app"})),
    "peer": Principal("peer:machine", "peer", "peer-1", "peer-1", grants=frozenset({"app"})),
    "the name of the command line": replace(LOCAL, id="local:cli", client="computer-linker"),
}
NOWHERE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def error_of(envelope: dict[str, Any]) -> dict[str, Any]:
    """What a caller learns from a refusal, without what it sent itself."""
    error: dict[str, Any] = envelope["error"]
    return {**error, "details": {name: value for name, value in error["details"].items() if name != "operationId"}}


async def deleted(road: Road, who: Principal) -> str:
    """A file that this caller deletes; the id of the deletion."""
    (road.root / "secret-plan.txt").write_text("theirs")
    envelope = await road.call("file.delete", "secret-plan.txt", principal=who)
    assert envelope["ok"], envelope
    return str(envelope["operationId"])


@pytest.mark.parametrize("who", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("author", [OWNER, LOCAL], ids=["the owner's", "a client's"])
@pytest.mark.parametrize("dry_run", [True, False])
async def test_nobody_takes_back_what_another_did(road: Road, author: Principal, who: Principal, dry_run: bool) -> None:
    theirs = await deleted(road, author)
    options = {"dryRun": dry_run}
    refused = await road.call("file.undo", input={"operationId": theirs}, options=options, principal=who)
    unknown = await road.call("file.undo", input={"operationId": NOWHERE}, options=options, principal=who)
    last = await road.call("file.undo", input={"operationId": "last"}, options=options, principal=who)
    assert error_of(refused) == error_of(unknown) == error_of(last)
    assert refused["error"]["code"] == "not_found"
    assert not (road.root / "secret-plan.txt").exists()
    # The one who did it still can.
    await road.data("file.undo", input={"operationId": theirs}, principal=author)
    assert (road.root / "secret-plan.txt").read_text() == "theirs"


async def test_a_local_client_does_not_take_back_what_the_command_line_of_its_own_user_did(road: Road) -> None:
    theirs = await deleted(road, replace(OWNER, id="cli:tester"))
    assert await road.code("file.undo", input={"operationId": theirs}, principal=LOCAL) == "not_found"
    assert not (road.root / "secret-plan.txt").exists()


async def test_the_owner_takes_back_what_a_client_did(road: Road) -> None:
    theirs = await deleted(road, LOCAL)
    assert await road.code("file.undo", input={"operationId": "last"}, principal=OWNER) == "not_found"
    await road.data("file.undo", input={"operationId": theirs}, principal=OWNER)
    assert (road.root / "secret-plan.txt").read_text() == "theirs"
    # What the owner did about it is the owner's.
    assert await road.code("file.undo", input={"operationId": "last"}, principal=LOCAL) == "not_found"


async def test_last_is_the_callers_own_newest(road: Road) -> None:
    await road.data("file.write", "a.txt", input={"content": "mine"}, principal=LOCAL)
    await road.data("file.write", "b.txt", input={"content": "another's"}, principal=OTHERS["oauth"])
    undone = await road.data("file.undo", input={"operationId": "last"}, principal=LOCAL)
    assert [file["path"] for file in undone["files"]] == ["a.txt"]
    assert (road.root / "b.txt").exists()


async def test_a_client_that_comes_again_finds_what_it_did(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        theirs = await deleted(road, LOCAL)
    async with Road.open(tmp_path) as road:
        again = replace(LOCAL, session="session-9", connection="connection-9")
        await road.data("file.undo", input={"operationId": theirs}, principal=again)
        assert (road.root / "secret-plan.txt").exists()


async def test_what_an_older_version_kept_is_the_owners(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        theirs = await deleted(road, LOCAL)
    journal = tmp_path / "home" / "undo" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"by":"local:tester",', b""))
    async with Road.open(tmp_path) as road:
        assert await road.code("file.undo", input={"operationId": theirs}, principal=LOCAL) == "not_found"
        await road.data("file.undo", input={"operationId": theirs}, principal=OWNER)


async def test_a_peer_restores_only_what_its_own_change_replaced(road: Road) -> None:
    await deleted(road, LOCAL)
    journal = road.app.services.use(UndoJournal)
    [record] = journal._records.values()
    [kept] = record.kept
    place = (str(road.root), ["secret-plan.txt"])
    assert journal.has_kept(kept, "app", LOCAL, place)
    assert not journal.has_kept(kept, "app", OTHERS["peer"], place)


@pytest.mark.parametrize("who", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("author", [OWNER, LOCAL], ids=["the owner's", "a client's"])
async def test_a_process_is_its_callers(road: Road, author: Principal, who: Principal) -> None:
    command = [sys.executable, "-c", "import sys; print('theirs', flush=True); sys.stdin.read()"]
    started = await road.data("command.start", input={"command": command}, principal=author)
    process = started["processId"]
    tries: list[tuple[str, dict[str, Any]]] = [
        ("command.read", {}),
        ("command.send", {"input": {"text": "x"}}),
        ("command.stop", {}),
        ("process.read", {}),
        ("process.stop", {}),
    ]
    for op, parts in tries:
        refused = await road.call(op, process, principal=who, **parts)
        unknown = await road.call(op, "proc_" + "0" * 24, principal=who, **parts)
        assert error_of(refused) == error_of(unknown), op
        assert refused["error"]["code"] == "process_not_found"
    assert (await road.data("command.list", principal=who))["processes"] == []
    state = await road.data("command.read", process, principal=OWNER, options={"waitSeconds": 20})
    assert state["status"] == "running"
    again = replace(author, session="session-9", connection="connection-9")
    assert (await road.data("command.stop", process, principal=again))["status"] == "stopped"
