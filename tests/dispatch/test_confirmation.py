"""A scope that asks: nothing happens without a person's yes to exactly this request."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.approvals.request import Answer, ApprovalRequest
from support.road import LOCAL, Road, folder_scope

pytestmark = pytest.mark.anyio

DELETE = {"op": "file.delete", "target": "keep.txt"}


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Road]:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        (road.root / "keep.txt").write_text("kept")
        yield road


def desk(road: Road) -> Approvals:
    return road.app.services.use(Approvals)


async def test_without_an_approver_the_answer_comes_at_once_and_says_how(asking: Road) -> None:
    envelope = await asking.call("file.delete", "keep.txt")
    assert envelope["error"]["code"] == "confirm_required"
    assert "computer-linker approvals" in envelope["error"]["message"]
    assert (asking.root / "keep.txt").exists()


async def test_reading_is_not_asked_about(asking: Road) -> None:
    assert (await asking.data("file.read", "keep.txt"))["content"] == "kept"


async def test_a_persons_yes_lets_the_same_request_pass_once(asking: Road) -> None:
    refused = await asking.call("file.delete", "keep.txt")
    assert desk(asking).answer(refused["error"]["details"]["approvalId"], "yes")
    other = await asking.call("file.delete", "keep.txt", options={"recursive": True})
    assert other["error"]["code"] == "confirm_required"
    assert (await asking.call("file.delete", "keep.txt"))["ok"]
    assert not (asking.root / "keep.txt").exists()
    (asking.root / "keep.txt").write_text("again")
    assert await asking.code("file.delete", "keep.txt") == "confirm_required"


async def test_a_token_is_bound_to_one_exact_request(asking: Road) -> None:
    issued = await asking.data("confirm.issue", input=DELETE)
    token = {"token": issued["token"]}
    assert await asking.code("file.delete", "keep.txt", confirm=token) == "confirm_required"
    assert desk(asking).answer(issued["approvalId"], "yes")
    assert (
        await asking.code("file.delete", "keep.txt", options={"recursive": True}, confirm=token) == "confirm_required"
    )
    stranger = replace(LOCAL, connection="elsewhere")
    assert await asking.code("file.delete", "keep.txt", confirm=token, principal=stranger) == "confirm_required"
    assert (asking.root / "keep.txt").exists()
    assert (await asking.call("file.delete", "keep.txt", confirm=token))["ok"]
    (asking.root / "keep.txt").write_text("again")
    assert await asking.code("file.delete", "keep.txt", confirm=token) == "confirm_required"
    assert (asking.root / "keep.txt").exists()


async def test_fifty_spends_of_one_token_give_one_success(asking: Road) -> None:
    write = {"op": "file.write", "target": "log.txt", "input": {"content": "x"}, "options": {"append": True}}
    for _ in range(20):
        issued = await asking.data("confirm.issue", input=write)
        desk(asking).answer(issued["approvalId"], "yes")
        results: list[bool] = []

        async def spend(token: str, results: list[bool]) -> None:
            envelope = await asking.call(
                "file.write", "log.txt", input={"content": "x"}, options={"append": True}, confirm={"token": token}
            )
            results.append(envelope["ok"])

        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(spend, issued["token"], results)
        assert results.count(True) == 1
    assert (asking.root / "log.txt").read_text() == "x" * 20


async def test_an_attached_approver_is_asked_and_no_means_no(asking: Road) -> None:
    seen: list[ApprovalRequest] = []
    answers: list[Answer | None] = ["no", None, "yes"]

    async def person(asked: ApprovalRequest) -> Answer | None:
        seen.append(asked)
        return answers.pop(0)

    async with desk(asking).attached("tests", person):
        assert await asking.code("file.delete", "keep.txt") == "denied_by_person"
        assert await asking.code("file.delete", "keep.txt") == "no_answer"
        assert (asking.root / "keep.txt").exists()
        assert (await asking.call("file.delete", "keep.txt"))["ok"]
    assert [asked.op for asked in seen] == ["file.delete"] * 3
    assert '"keep.txt"' in seen[0].preview
    assert desk(asking).waiting() == []


async def test_a_waiting_call_can_be_cancelled_and_is_gone(asking: Road) -> None:
    async def never(asked: ApprovalRequest) -> Answer | None:
        await anyio.sleep_forever()
        return None

    async with desk(asking).attached("tests", never):
        with anyio.move_on_after(0.05):
            await asking.call("file.delete", "keep.txt")
    assert desk(asking).waiting() == []
    assert (asking.root / "keep.txt").exists()


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"op": "file.read", "target": "keep.txt"}, "invalid_request"),
        ({"op": "nope.nope"}, "unknown_operation"),
        ({"op": "screen.capture"}, "invalid_request"),
        ({"op": "file.delete", "target": 5}, "invalid_request"),
        ({"op": "file.delete", "target": "keep.txt", "approvedAt": "now"}, "invalid_request"),
    ],
)
async def test_a_token_is_issued_only_for_what_could_be_done(
    asking: Road, wanted: dict[str, object], code: str
) -> None:
    assert await asking.code("confirm.issue", input=wanted) == code


async def test_in_a_batch_one_token_is_spent_once(asking: Road) -> None:
    (asking.root / "more.txt").write_text("more")
    issued = await asking.data("confirm.issue", input=DELETE)
    desk(asking).answer(issued["approvalId"], "yes")
    item = {**DELETE, "confirm": {"token": issued["token"]}}
    data = (await asking.call("batch.run", input={"operations": [item, item]}))["data"]
    assert [result["ok"] for result in data["results"]] == [True, False]
