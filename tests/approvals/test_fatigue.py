"""A client that floods, replays, races or renames itself gets no yes that the owner did not give, and does not wear them down."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from computer_linker.audit.wording import described
from computer_linker.model.history import HistoryEvent
from computer_linker.serve.owner_calls import OwnerCalls
from support.pair import events_of
from support.road import LOCAL, OWNER, Road, folder_scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as opened:
        (opened.root / "keep.txt").write_text("kept")
        yield opened


def approvals(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


async def delete(road: Road, **parts: Any) -> dict[str, Any]:
    return await road.call("file.delete", "keep.txt", **parts)


async def test_a_flood_leaves_few_requests_and_room_for_others(road: Road) -> None:
    for number in range(120):
        who = replace(LOCAL, session=f"s{number % 6}", connection=f"c{number % 6}")
        assert not (await road.call("file.mkdir", f"made-{number}", principal=who))["ok"]
    mine = approvals(road).waiting()
    assert len(mine) <= 50 and all(sum(one.session == s for one in mine) <= 20 for s in {one.session for one in mine})
    other = await delete(road, principal=replace(LOCAL, id="local:other"))
    assert "approvalId" in other["error"]["details"], other
    assert [path.name for path in road.root.iterdir()] == ["keep.txt"]


async def test_after_three_noes_the_owner_is_left_alone_and_a_yes_ends_that(road: Road) -> None:
    shown: list[str] = []

    async def person(asked: ApprovalRequest) -> Answer | None:
        shown.append(asked.id)
        return "no"

    async with approvals(road).attached("tests", person):
        codes = [await road.code("file.mkdir", f"made-{number % 4}") for number in range(12)]
    assert set(codes) == {"denied_by_person"} and len(shown) == 3
    late = await road.call("file.mkdir", "once-more")
    assert late["error"]["details"]["retryAfterSeconds"] <= 60 and approvals(road).waiting() == []
    told = {
        event["target"]: described(cast(HistoryEvent, event)).outcome for event in await events_of(road, "file.mkdir")
    }
    assert told["once-more"] == "not shown to you, after several noes", "nobody said no to this one"
    assert [path.name for path in road.root.iterdir()] == ["keep.txt"]


async def test_noes_to_one_client_leave_others_alone_until_it_takes_another_name(road: Road) -> None:
    """A client names itself: the names of one user together get no more than twice as many."""
    shown: list[str] = []

    async def person(asked: ApprovalRequest) -> Answer | None:
        shown.append(asked.client or "")
        return "no"

    async def ask(name: str, number: int) -> dict[str, Any]:
        return await road.call("file.mkdir", f"made-{number}", principal=replace(LOCAL, client=name))

    async with approvals(road).attached("tests", person):
        for number in range(5):
            await ask(f"pest/{number}", number)
        assert len(shown) == 3, "whatever its version"
        for number in range(3):
            await ask("other/1", number)
        assert shown[3:] == ["other/1"] * 3, "another client is asked about"
        for name in ("third", "fourth"):
            assert "retryAfterSeconds" in (await ask(name, 9))["error"]["details"]
        elsewhere = await delete(road, principal=replace(LOCAL, id="local:another", client="pest/1"))
        assert "approvalId" in elsewhere["error"]["details"], "of another user"
    assert len(shown) == 7 and [path.name for path in road.root.iterdir()] == ["keep.txt"]


async def test_one_no_to_all_of_a_client_pauses_that_client_alone(road: Road) -> None:
    flood, other = replace(LOCAL, client="flood/1"), replace(LOCAL, client="editor/2")
    for number in range(16):
        await road.call("file.mkdir", f"made-{number}", principal=flood)
    await OwnerCalls(road.app.dispatcher).call("approvals.deny", {"client": "flood"}, OWNER)
    assert "retryAfterSeconds" in (await road.call("file.mkdir", "more", principal=flood))["error"]["details"]
    assert "approvalId" in (await delete(road, principal=other))["error"]["details"]


async def test_one_request_too_many_is_no_question_and_reads_so(road: Road) -> None:
    for number in range(20):
        assert await road.code("file.mkdir", f"made-{number}") == "confirm_required"
    late = (await road.call("file.mkdir", "late"))["error"]
    assert late["code"] == "limit_exceeded" and "too many requests" in late["message"]
    [event] = [one for one in await events_of(road, "file.mkdir") if one["target"] == "late"]
    told = described(cast(HistoryEvent, event))
    assert (told.what, told.outcome) == ("tried to make the folder late", "not shown to you: too many waited")
    assert len(approvals(road).waiting()) == 20 and [path.name for path in road.root.iterdir()] == ["keep.txt"]


async def test_the_same_request_many_times_is_one_request_to_the_owner(road: Road) -> None:
    for _ in range(10):
        assert (await delete(road))["error"]["code"] == "confirm_required"
    (only,) = approvals(road).waiting()
    assert approvals(road).answer(only.id, "yes")
    assert (await delete(road))["ok"]


async def test_a_replayed_yes_is_none(road: Road) -> None:
    refused = await delete(road)
    approvals(road).answer(refused["error"]["details"]["approvalId"], "yes")
    renamed, moved = replace(LOCAL, client="another"), replace(LOCAL, connection="another")
    assert (await delete(road, principal=moved))["error"]["code"] == "confirm_required", "of another connection"
    assert (await delete(road, principal=renamed))["ok"], (
        "a once-given yes is to the connection, whatever name it takes"
    )
    (road.root / "keep.txt").write_text("kept")
    assert (await delete(road))["error"]["code"] == "confirm_required", "and it is used up"
    assert approvals(road).answer(refused["error"]["details"]["approvalId"], "yes") is None
    assert (road.root / "keep.txt").exists()


@pytest.mark.parametrize("answer", ["yes", "same"])
async def test_what_changes_between_showing_and_the_yes_is_not_done(road: Road, answer: Answer) -> None:
    async def person(asked: ApprovalRequest) -> Answer | None:
        assert "-kept" in asked.text
        (road.root / "keep.txt").write_text("changed while the owner read")
        return answer

    async with approvals(road).attached("tests", person):
        done = await delete(road)
    assert done["error"]["code"] == "conflict", done
    assert (road.root / "keep.txt").read_text() == "changed while the owner read"
    assert (await delete(road))["error"]["code"] == "confirm_required", "what stands is to what was shown"


async def test_two_answers_at_once_are_one(road: Road) -> None:
    refused = await delete(road)
    asked = refused["error"]["details"]["approvalId"]
    assert approvals(road).answer(asked, "no")
    assert approvals(road).answer(asked, "shape") is None and approvals(road).store.standing == []
    assert (await delete(road))["error"]["code"] == "denied_by_person"


async def test_one_no_answers_every_waiting_request_of_a_client(road: Road) -> None:
    flood, other = replace(LOCAL, client="flood/1.0"), replace(LOCAL, id="local:other", client="editor/2")
    for number in range(16):
        await road.call("file.mkdir", f"made-{number}", principal=flood)
    await delete(road, principal=other)
    owner = OwnerCalls(road.app.dispatcher)
    denied = (await owner.call("approvals.deny", {"client": "flood"}, OWNER)).envelope["data"]
    [left] = approvals(road).waiting()
    assert denied.requests == 16 and left.client == "editor/2"
    assert await road.code("file.mkdir", "made-3", principal=flood) == "denied_by_person"
    [row] = await events_of(road, "approvals.deny")
    assert described(row).what == "denied 16 requests of flood"  # type: ignore[arg-type]
    wrong = (await owner.call("approvals.deny", {"client": "nothing"}, OWNER)).envelope
    assert wrong["error"]["code"] == "not_found" and len(approvals(road).waiting()) == 1
    assert [path.name for path in road.root.iterdir()] == ["keep.txt"]
