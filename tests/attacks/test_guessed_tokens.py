"""Wrong confirmation tokens cost the one who guesses, in the conversation they guess in, and nobody else (B16)."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.model.principal import Principal
from support.road import Road, folder_scope
from support.service import TOKEN, Http, serving

pytestmark = pytest.mark.anyio

OWNER = Principal("owner", "owner_token", "http-1", "http-127.0.0.1")
DELETE = {"op": "file.delete", "target": "keep.txt"}


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as opened:
        (opened.root / "keep.txt").write_text("kept")
        yield opened


def people(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


async def approved(road: Road, who: Principal) -> dict[str, str]:
    issued = await road.data("confirm.issue", input=DELETE, principal=who, options={"ttlSeconds": 600})
    assert people(road).answer(issued["approvalId"], "yes")
    return {"token": issued["token"]}


async def guess(road: Road, who: Principal, times: int) -> None:
    for number in range(times):
        guessed = {"token": f"guess-{number}"}
        assert await road.code("file.delete", "keep.txt", confirm=guessed, principal=who) == "confirm_required"


@pytest.mark.parametrize(
    "other",
    [
        replace(OWNER, session="http-2"),
        replace(OWNER, connection="http-forwarded-127.0.0.1", is_forwarded=True),
        replace(OWNER, connection="http-192.0.2.7"),
        Principal("oauth:x", "oauth", "http-3", "http-127.0.0.1"),
    ],
)
@pytest.mark.parametrize("has_own", [True, False])
async def test_another_conversations_guesses_void_nothing(road: Road, other: Principal, has_own: bool) -> None:
    """The same credential in another conversation, with and without a question of its own."""
    token = await approved(road, OWNER)
    waiting = await road.call("file.mkdir", "made", principal=OWNER)
    if has_own:
        await approved(road, other)
    await guess(road, other, 40)
    assert waiting["error"]["details"]["approvalId"] in [one.id for one in people(road).waiting()]
    assert (await road.call("file.delete", "keep.txt", confirm=token, principal=OWNER))["ok"]


async def test_the_guesser_loses_what_waits_for_it_in_that_conversation(road: Road) -> None:
    token = await approved(road, OWNER)
    await road.call("file.mkdir", "made", principal=OWNER)
    await guess(road, OWNER, 10)
    assert people(road).waiting() == []
    assert await road.code("file.delete", "keep.txt", confirm=token, principal=OWNER) == "confirm_required"
    assert (road.root / "keep.txt").exists()


async def test_a_right_token_begins_the_count_anew(road: Road) -> None:
    for _ in range(3):
        (road.root / "keep.txt").write_text("kept")
        token = await approved(road, OWNER)
        await guess(road, OWNER, 9)
        assert (await road.call("file.delete", "keep.txt", confirm=token, principal=OWNER))["ok"]


async def test_a_thousand_conversations_of_guesses_are_not_remembered(road: Road) -> None:
    """Counters are bounded by the questions there are: a conversation without a token has nothing to hit, and no counter."""
    token = await approved(road, OWNER)
    for number in range(1000):
        await guess(road, replace(OWNER, session=f"http-new-{number}"), 1)
    assert len(people(road).ledger._wrong) == 0
    for number in range(30):
        who = replace(OWNER, session=f"http-own-{number}")
        await approved(road, who)
        await guess(road, who, 3)
    assert len(people(road).ledger._wrong) == 30
    for asked in list(people(road).ledger._asked.values()):
        if asked.session != OWNER.session:
            people(road).ledger.withdraw(asked)
    assert len(people(road).ledger._wrong) == 0
    assert (await road.call("file.delete", "keep.txt", confirm=token, principal=OWNER))["ok"]


async def test_a_spent_token_that_comes_again_is_a_guess_and_does_nothing(road: Road) -> None:
    token = await approved(road, OWNER)
    assert (await road.call("file.delete", "keep.txt", confirm=token, principal=OWNER))["ok"]
    (road.root / "keep.txt").write_text("again")
    for _ in range(12):
        assert await road.code("file.delete", "keep.txt", confirm=token, principal=OWNER) == "confirm_required"
    assert (road.root / "keep.txt").read_text() == "again"


def test_over_http_one_session_of_the_owner_token_takes_nothing_from_another(tmp_path: Path) -> None:
    scopes = [folder_scope(tmp_path / "root", confirm="all")]
    with serving(tmp_path, token=TOKEN, scopes=scopes) as service:
        (service.root / "keep.txt").write_text("kept")
        first, second = service.http(), service.http()

        def call(link: Http, **arguments: Any) -> dict[str, Any]:
            params = {"name": "computer_operation", "arguments": {"scope": "app", **arguments}}
            answer: dict[str, Any] = json.loads(link.legacy("tools/call", params)["result"]["content"][0]["text"])
            return answer

        token = {"token": call(first, op="confirm.issue", input=DELETE)["data"]["token"]}
        call(second, op="confirm.issue", input=DELETE)
        for number in range(25):
            guessed = {"token": f"guess-{number}"}
            assert call(second, **DELETE, confirm=guessed)["error"]["code"] == "confirm_required"
        listed = call(first, op="confirm.list")["data"]["pending"]
        assert [one["op"] for one in listed] == ["file.delete"], "the first session's question still waits"
        refused = call(first, **DELETE, confirm=token)
        assert "not approved this token yet" in refused["error"]["message"], "and its token is still one"
        first.close()
        second.close()
        assert (service.root / "keep.txt").exists()
