"""A question nobody answered stays open under its id, once; a yes to it counts only while what was shown is still so."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.transports.http.approval_html import SCRIPT_HASH, list_page
from computer_linker.transports.http.approval_page import HEADERS
from support.road import LOCAL, Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as opened:
        (opened.root / "notes.txt").write_text("one\ntwo\n")
        yield opened


def people(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


async def write(road: Road, content: str = "one\n2\n", **more: Any) -> dict[str, Any]:
    return await road.call("file.write", "notes.txt", input={"content": content}, **more)


def text(road: Road) -> str:
    return (road.root / "notes.txt").read_text()


async def test_the_same_request_again_is_the_same_question(road: Road) -> None:
    ids = {(await write(road))["error"]["details"]["approvalId"] for _ in range(120)}
    assert len(ids) == 1 == len(people(road).waiting()), "a client that tries again fills no list"
    assert (await write(road, "other"))["error"]["details"]["approvalId"] not in ids
    other = await write(road, principal=replace(LOCAL, session="other"))
    assert other["error"]["details"]["approvalId"] not in ids


async def test_two_calls_at_once_need_a_yes_each(road: Road) -> None:
    asked: list[ApprovalRequest] = []

    async def person(one: ApprovalRequest) -> Answer | None:
        asked.append(one)
        await until(lambda: len(asked) >= 2)
        return "yes" if one is asked[0] else "no"

    answers: list[bool] = []

    async def call() -> None:
        answers.append((await write(road))["ok"])

    with anyio.fail_after(20):
        async with people(road).attached("tests", person), anyio.create_task_group() as group:
            group.start_soon(call)
            group.start_soon(call)
    assert sorted(answers) == [False, True] and asked[0].id != asked[1].id


async def test_an_approver_that_gives_up_leaves_the_question_to_the_others(road: Road) -> None:
    """As a client's dialog does that nobody watches, while a person sits at the terminal."""

    gave_up = anyio.Event()

    async def closed(_: ApprovalRequest) -> Answer | None:
        gave_up.set()
        return None

    async def person(_: ApprovalRequest) -> Answer | None:
        await gave_up.wait()
        # What the giving up does to the question is done by then.
        await anyio.wait_all_tasks_blocked()
        return "yes"

    async with people(road).attached("closed", closed):
        refused = await write(road)
        assert refused["error"]["code"] == "no_answer" and text(road) == "one\ntwo\n"
        assert refused["error"]["details"]["approveWith"].endswith(refused["error"]["details"]["approvalId"])
        assert len(people(road).waiting()) == 1, "it can still be allowed"
        gave_up = anyio.Event()
        async with people(road).attached("person", person):
            with anyio.fail_after(20):
                assert (await write(road))["ok"]
    assert text(road) == "one\n2\n" and people(road).waiting() == []


async def test_a_yes_to_an_open_question_lets_the_next_call_pass_once(road: Road) -> None:
    people(road).answer((await write(road))["error"]["details"]["approvalId"], "yes")
    assert (await write(road))["ok"]
    assert (await write(road))["error"]["code"] == "confirm_required"


async def test_what_is_shown_is_the_difference_with_every_byte_visible(road: Road) -> None:
    await write(road, "one\n2\x1b[2J\u202e\n")
    [asked] = people(road).waiting()
    assert asked.about is not None
    assert "-two" in asked.about.lines and "+2\\x1b[2J\\u202e" in asked.about.lines
    assert all(line.isprintable() for line in asked.about.lines)


async def test_a_file_that_changed_after_the_yes_is_not_written(road: Road) -> None:
    people(road).answer((await write(road))["error"]["details"]["approvalId"], "yes")
    (road.root / "notes.txt").write_text("what nobody was shown\n")
    refused = await write(road)
    assert refused["error"]["code"] == "conflict" and refused["error"]["details"]["changed"] == ["notes.txt"]
    assert text(road) == "what nobody was shown\n"
    assert (await write(road))["error"]["code"] == "confirm_required", "and that yes is gone"


async def test_a_token_is_bound_to_what_was_shown_too(road: Road) -> None:
    wanted = {"op": "file.write", "target": "notes.txt", "input": {"content": "one\n2\n"}}
    issued = await road.data("confirm.issue", input=wanted)
    people(road).answer(issued["approvalId"], "yes")
    (road.root / "notes.txt").write_text("what nobody was shown\n")
    refused = await write(road, confirm={"token": issued["token"]})
    assert refused["error"]["code"] == "conflict" and text(road) == "what nobody was shown\n"
    (road.root / "notes.txt").write_text("one\ntwo\n")
    assert (await write(road, confirm={"token": issued["token"]}))["error"]["code"] == "confirm_required"


async def test_a_file_that_changes_while_the_person_thinks_is_not_written(road: Road) -> None:
    async def slow(_: ApprovalRequest) -> Answer | None:
        (road.root / "notes.txt").write_text("meanwhile\n")
        return "yes"

    async with people(road).attached("tests", slow):
        refused = await write(road)
    assert refused["error"]["code"] == "conflict" and text(road) == "meanwhile\n"


async def test_a_question_that_would_show_something_else_by_now_is_a_new_one(road: Road) -> None:
    first = (await write(road))["error"]["details"]["approvalId"]
    (road.root / "notes.txt").write_text("changed\n")
    second = (await write(road))["error"]["details"]["approvalId"]
    assert first != second and [asked.id for asked in people(road).waiting()] == [second]
    assert people(road).answer(first, "yes") is None


async def test_a_clients_own_name_cannot_paint_over_what_is_shown(road: Road) -> None:
    await write(road, principal=replace(LOCAL, client="nice\x1b[2J\u202e\nAllowed."))
    [asked] = people(road).waiting()
    assert asked.client == 'client "nice\\x1b[2J\\u202e\\x0aAllowed."'


async def test_the_page_shows_it_as_text_and_the_picture_within(road: Road) -> None:
    (road.root / "notes.txt").write_text("<script>alert(1)</script>\n")
    await write(road, '<img src=x onerror="alert(1)">\n', principal=replace(LOCAL, client="<b>me</b>"))
    [asked] = people(road).waiting()
    asked.picture = b"\x89PNG pixels"
    page = list_page([(asked, [])], "secret-csrf", "<i>box</i>")
    assert page.count("<script") == 1 and SCRIPT_HASH in dict(HEADERS)[b"content-security-policy"].decode(), (
        "its own alone"
    )
    assert (
        'http-equiv="refresh"' not in page and "<img src=x" not in page and "<b>me" not in page and "<i>box" not in page
    )
    assert '<span class="del">-&lt;script&gt;alert(1)&lt;/script&gt;</span>' in page
    assert page.count("<img ") == 1 and 'src="data:image/png;base64,iVBORyBwaXhlbHM="' in page
