"""A token that lies in `input.confirm`, where clients of the desktop bridge put it, is read, bound and spent as any other."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.computer.simulated import SimulatedComputer
from support.road import LOCAL, Road, computer_scope, folder_scope

pytestmark = pytest.mark.anyio

CLICK: dict[str, Any] = {"key": "a"}


@pytest.fixture
async def road(tmp_path: Path) -> AsyncIterator[Road]:
    computer = SimulatedComputer()
    computer.world.open("editor")
    scopes = [computer_scope(confirm="act"), folder_scope(tmp_path / "root", confirm="all")]
    async with Road.open(tmp_path, scopes, computer) as opened:
        yield opened


def pressed(road: Road) -> int:
    computer = road.app.computer
    assert isinstance(computer, SimulatedComputer)
    return sum(one["event"] == "press" for one in computer.world.windows[0].log)


async def token(road: Road, form: str = "op", *, approve: bool = True) -> str:
    """A token to press `a`, asked for in either form."""
    intent = {"method": "desktop.press", "params": CLICK}
    given = {"intent": intent} if form == "intent" else {"op": "desktop.press", "input": CLICK}
    issued = await road.data("confirm.issue", scope="desk", input=given)
    if approve:
        road.app.services.use(Approvals).answer(issued["approvalId"], "yes")
    found: str = issued["token"]
    return found


async def press(road: Road, inside: Any, **more: Any) -> dict[str, Any]:
    return await road.call("desktop.press", scope="desk", input={**CLICK, "confirm": inside}, **more)


@pytest.mark.parametrize("form", ["op", "intent"])
async def test_it_is_good_once(road: Road, form: str) -> None:
    confirm = {"token": await token(road, form)}
    assert (await press(road, confirm))["ok"]
    assert (await press(road, confirm))["error"]["code"] == "confirm_required"
    assert pressed(road) == 1


@pytest.mark.parametrize("op", ["batch", "batch.run"])
async def test_in_a_batch_the_first_acts_and_the_second_is_refused(road: Road, op: str) -> None:
    item = {"op": "desktop.press", "input": {**CLICK, "confirm": {"token": await token(road)}}}
    data = (await road.call(op, scope="desk", input={"operations": [item, item]}))["data"]
    assert [result["ok"] for result in data["results"]] == [True, False]
    assert data["results"][1]["error"]["code"] == "confirm_required"
    assert pressed(road) == 1


@pytest.mark.parametrize(
    "confirm",
    [
        None, {}, {"phrase": "CONFIRM"}, {"token": "guess"}, {"token": ""}, {"approvedAt": "2026-02-09T12:00:00Z"},
        {"token": "self", "approvedAt": "2026-02-09T12:00:00Z", "approver": "user"},
    ],
)  # fmt: skip
async def test_nothing_but_an_approved_token_counts(road: Road, confirm: Any) -> None:
    await token(road)
    assert (await press(road, confirm))["error"]["code"] == "confirm_required"
    assert pressed(road) == 0


async def test_claims_beside_a_token_that_nobody_approved_change_nothing(road: Road) -> None:
    claimed = {"token": await token(road, approve=False), "approvedAt": "2026-02-09T12:00:00Z", "approver": "user"}
    assert (await press(road, claimed))["error"]["code"] == "confirm_required"
    assert pressed(road) == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"input": {"key": "b"}},
        {"input": {"key": "a", "count": 2}},
        {"options": {"verify": False}},
        {"principal": replace(LOCAL, connection="other")},
        {"principal": replace(LOCAL, session="other")},
    ],
)
async def test_it_is_good_for_one_caller_and_one_request(road: Road, changed: dict[str, Any]) -> None:
    confirm = {"token": await token(road)}
    given = {"input": CLICK, **changed}
    given["input"] = {**given["input"], "confirm": confirm}
    assert await road.code("desktop.press", scope="desk", **given) == "confirm_required"
    assert pressed(road) == 0
    assert (await press(road, confirm))["ok"], "and what was refused spent nothing"


async def test_two_tokens_or_a_token_that_is_no_text_are_refused(road: Road) -> None:
    good = await token(road)
    twice = await press(road, {"token": "other"}, confirm={"token": good})
    assert twice["error"]["code"] == "invalid_request"
    assert (await press(road, {"token": 5}))["error"]["code"] == "invalid_request"
    assert pressed(road) == 0
    assert (await press(road, {"token": good}, confirm={"token": good}))["ok"]


async def test_an_operation_whose_input_has_no_confirm_still_refuses_the_field(road: Road) -> None:
    given = {"content": "x", "confirm": {"token": "t"}}
    assert await road.code("file.write", "new.txt", input=given) == "invalid_request"
    assert not (road.root / "new.txt").exists()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"intent": {"method": "desktop.press", "params": CLICK}, "op": "desktop.press"},
        {"intent": {"method": "desktop.press", "params": CLICK}, "input": CLICK},
        {"intent": {"params": CLICK}},
        {"intent": {"method": "desktop.press", "params": CLICK, "approved": True}},
        {"intent": {"method": "desktop.press", "params": {"unknown": 1}}},
    ],
)
async def test_an_intent_is_one_exact_form(road: Road, given: dict[str, Any]) -> None:
    assert await road.code("confirm.issue", scope="desk", input=given) == "invalid_request"
    assert road.app.services.use(Approvals).waiting() == []
