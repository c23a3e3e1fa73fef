"""The history's text says what happened, and by whom: an attempt is no deed, and no client passes for the owner."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.approvals.answers import Answerer
from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.approvals.terminal import shown
from computer_linker.audit.page import timeline_page
from computer_linker.audit.store import AuditStore
from computer_linker.audit.views import answer
from computer_linker.audit.wording import approval_phrase, described
from computer_linker.cli.approval_text import format_request
from computer_linker.cli.history_table import group_rows
from computer_linker.serve.owner_calls import OwnerCalls
from computer_linker.transports.refusals import RefusalNotes
from computer_linker.watch.calls import Calls
from support.pair import events_of
from support.road import LOCAL, OWNER, Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio

CLAIMS = ["cli:root", "page:10.0.0.2", "approver", "computer-linker", "Computer Linker/1", "oauth:client_x"]
"""Names that principals and the service's own programs have."""
GROUP = {"session": "s", "firstAt": "2026-11-01T08:30:00Z", "lastAt": "2026-11-01T08:30:00Z", "events": 1, "failed": 0}

OF_GIT = ("git.stage", "git.unstage", "git.commit")


async def test_what_failed_before_its_effect_was_tried(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        await road.call("file.write", "sub/y.txt", input={"content": "x"})
        await road.call("command.run", ".", input={"command": "echo a | cat"})
        await road.call("command.run", ".", input={"command": "false"})
        [written] = await events_of(road, "file.write")
        told = {described(event)[3:5] for event in await events_of(road, "command.run")}  # type: ignore[arg-type]
        assert described(written)[3:5] == ("tried to write sub/y.txt", "failed: not found")  # type: ignore[arg-type]
    assert ("ran false", "exit 1") in told and len(told) == 2
    assert all(what.startswith("tried to run ") for what, outcome in told if outcome != "exit 1"), told


@pytest.mark.parametrize("name", ["owner", "Owner", " owner ", "o w n e r", "OWNER/1", "owner on desk", "you", *CLAIMS])
async def test_a_client_cannot_be_shown_as_the_owner(tmp_path: Path, name: str) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        await road.call("file.mkdir", "made", principal=replace(LOCAL, client=name))
        await road.call("file.stat", ".", principal=OWNER)
        [asked] = road.app.services.use(Approvals).waiting()
        [made], [looked] = await events_of(road, "file.mkdir"), await events_of(road, "file.stat")
    assert asked.asker.startswith('client "') and described(made).who.startswith('client "')  # type: ignore[arg-type]
    assert described(looked).who == "owner"  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, "ghp_abcdefghijklmnopqrstuvwxyz0123456789"])
async def test_a_program_with_the_owner_token_is_not_shown_as_the_owner(tmp_path: Path, name: str | None) -> None:
    program = replace(LOCAL, id="owner", proof="owner_token", client=name)
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        await road.call("file.mkdir", "made", principal=program)
        [asked] = road.app.services.use(Approvals).waiting()
        [made] = await events_of(road, "file.mkdir")
        [group] = list(group_rows([{**GROUP, "principal": made["principal"], "client": made["client"]}], "session"))
    assert described(made).who == "a program with the owner token"  # type: ignore[arg-type]
    assert group[1] == "a program with the owner token"
    assert asked.asker.removeprefix(f"{name} ") in (
        "a program with the owner token",
        "(a program with the owner token)",
    )


async def test_an_approver_sees_that_a_request_comes_from_outside(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        for who in (replace(LOCAL, is_forwarded=True), replace(LOCAL, session="session-2")):
            await road.call("file.mkdir", "made", principal=who)
        outside, inside = road.app.services.use(Approvals).waiting()
    for text in (
        outside.asker,
        shown(outside).asker,
        "\n".join(line for line, _ in format_request(shown(outside), 80)),
    ):
        assert "tests (local:tester, from outside this computer)" in text, text
    assert inside.asker == "tests (local:tester)"


async def test_an_undo_names_the_file_it_put_back(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        first = await road.call("file.write", "notes.txt", input={"content": "x"})
        diff = "".join(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+y\n" for name in ("a.txt", "b.txt", "c.txt"))
        second = await road.call("file.patch", input={"diff": diff})
        for made in (second, first):
            await road.data("file.undo", input={"operationId": made["operationId"]})
        rows = {described(event).what for event in await events_of(road, "file.undo")}  # type: ignore[arg-type]
    short = [made["operationId"][-7:] for made in (first, second)]
    assert f"took back the change of notes.txt ({short[0]})" in rows
    assert any(row.endswith(f" and 2 more ({short[1]})") and ".txt" in row for row in rows), rows


async def test_a_request_whose_client_left_was_withdrawn(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        (road.root / "y.txt").write_text("kept")
        async with road.app.services.use(Approvals).attached("tests", silent), anyio.create_task_group() as group:
            group.start_soon(road.call, "file.delete", "y.txt")
            await until(road.app.services.use(Approvals).waiting)
            group.cancel_scope.cancel()
        [left] = await events_of(road, "file.delete")
        assert described(left)[3:5] == ("tried to delete y.txt", "withdrawn")  # type: ignore[arg-type]
        assert (road.root / "y.txt").read_text() == "kept" and not road.app.services.use(Approvals).waiting()


async def test_a_no_of_the_clients_own_dialog_is_not_the_owners(tmp_path: Path) -> None:
    async def own_dialog(_: ApprovalRequest) -> Answer | None:
        return "no"

    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        wire = {"scope": "app", "op": "file.mkdir", "target": "made"}
        reply = await road.app.dispatcher.call_wire(wire, LOCAL, ask=own_dialog)
        [made], [answer] = await events_of(road, "file.mkdir"), await events_of(road, "approvals.deny")
    assert reply.envelope["error"]["message"] == "The client's own dialog said no to file.mkdir."
    assert described(made)[3:5] == ("tried to make the folder made", "refused by its own dialog")  # type: ignore[arg-type]
    assert approval_phrase(made) == "refused by its own dialog (dialog, once)"  # type: ignore[arg-type]
    assert described(answer).what.startswith("refused in its own dialog ")  # type: ignore[arg-type]
    assert not (road.root / "made").exists()


async def silent(_: ApprovalRequest) -> Answer | None:
    await anyio.sleep_forever()
    return None


async def test_summary_and_queries_know_clients_by_name(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        await road.call("file.stat", ".", principal=OWNER)
        for name in ("owner", "computer-linker", "flood/1.0", "flood/2.0", "floods"):
            await road.call("file.stat", ".", principal=replace(LOCAL, client=name))
        store = road.app.services.use(AuditStore)
        ask: dict[str, Any] = {"visible": None, "limit": 50, "cursor": None}
        summary = (await answer(store, view="summary", query=None, **ask))["summary"]
        found = {}
        for query in ("client:flood", "client:flood*", "client:flood/2.0", "client:flo"):
            rows = (await answer(store, view="timeline", query=query, **ask))["events"]
            found[query] = sorted({row["client"] for row in rows})
    counts = {one["name"]: one["events"] for one in summary["clients"]}
    assert counts["owner"] == 1 and counts['client "owner"'] == 1 == counts['client "computer-linker"']
    assert list(found.values()) == [
        ["flood/1.0", "flood/2.0"], ["flood/1.0", "flood/2.0", "floods"], ["flood/2.0"], [],
    ]  # fmt: skip


async def test_what_was_refused_before_it_was_read_names_what_is_known(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        await road.call("file.read", "notes.txt", scope="elsewhere")
        await RefusalNotes(road.app.dispatcher).note("127.0.0.1", "unknown_token")
        road.app.dispatcher.pause.begin(None)
        await road.call("file.read", "notes.txt")
        await road.call("command.run", ".", input={"command": ["echo", "a"]})
        rows = [described(event) for event in await events_of(road, "file.read")]  # type: ignore[arg-type]
        [ran], [refused] = await events_of(road, "command.run"), await events_of(road, "")
    assert {(row.scope, row.what) for row in rows} == {
        ("(unknown)", "tried to read notes.txt"),
        ("app", "tried to read notes.txt"),
    }
    assert described(ran)[3:5] == ("tried to run echo a", "refused: clients are paused")  # type: ignore[arg-type]
    assert described(refused)[3:5] == ("tried to send a request", "refused: wrong credential")  # type: ignore[arg-type]


async def test_an_answer_of_the_owners_command_line_is_the_owners(tmp_path: Path) -> None:
    """Found: it read `approved by cli:root`."""
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        people = road.app.services.use(Approvals)
        for name, said in (("made", "yes"), ("not", "no")):
            await road.call("file.mkdir", name)
            [asked] = people.waiting()
            assert people.answer(asked.id, said, Answerer(OWNER, "terminal"))  # type: ignore[arg-type]
            await road.call("file.mkdir", name)
        events = await events_of(road, "file.mkdir")
    phrases = {approval_phrase(event) for event in events}  # type: ignore[arg-type]
    assert phrases == {None, "approved by owner (terminal, once)", "denied by owner (terminal, once)"}


async def test_staging_and_committing_name_their_files(tmp_path: Path) -> None:
    """Found: the rows named no file."""
    async with Road.open(tmp_path) as road:
        for words in (["init", "-q"], ["config", "user.name", "T"], ["config", "user.email", "t@example.org"]):
            subprocess.run(["git", *words], cwd=road.root, check=True)
        for name in ("a.txt", "b.txt", "c.txt"):
            (road.root / name).write_text("x\n")
        await road.data("git.stage", ".", input={"paths": ["a.txt"]})
        await road.data("git.stage", ".", input={"paths": ["b.txt", "c.txt"]})
        await road.data("git.unstage", ".", input={"paths": ["c.txt"]})
        await road.data("git.commit", ".", input={"message": "first"})
        rows = {described(event).what for op in OF_GIT for event in await events_of(road, op)}  # type: ignore[arg-type]
    assert rows == {"staged a.txt", "staged b.txt and 1 more", "unstaged c.txt", "committed a.txt and 1 more"}


async def test_an_owners_undo_is_one_row_of_the_page_and_of_watch(tmp_path: Path) -> None:
    """Found: the change of files that it made was a second row."""
    async with Road.open(tmp_path) as road:
        made = await road.call("file.write", "a.txt", input={"content": "x"})
        await OwnerCalls(road.app.dispatcher).call("undo", {"operation": made["operationId"]}, OWNER)
        found = await answer(
            road.app.services.use(AuditStore), view="timeline", visible=None, limit=50, query=None, cursor=None
        )
    events, calls = found["events"], Calls()
    for event in events:
        calls.take(event)
    assert {"undo", "file.undo"} <= {event["op"] for event in events}
    page = timeline_page(events, title="History")
    assert '"op":"undo"' in page and '"op":"file.undo"' not in page
    assert "file.undo" not in {call.event["op"] for call in calls.newest_first([])}


async def test_a_write_that_changes_nothing_says_so(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        for content in ("one", "one", "two", ""):
            written = await road.call("file.write", "a.txt", input={"content": content})
            is_same = "a.txt had this content already: only its time changed." in written.get("warnings", [])
            assert written["ok"] and is_same is (written["data"]["created"] is False and content == "one"), written
        rows = [described(event).outcome for event in await events_of(road, "file.write")]  # type: ignore[arg-type]
    assert sorted(rows) == ["done", "done", "done", "done, nothing changed"]
