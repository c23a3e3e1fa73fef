"""A question belongs to the conversation that asked: no other sees it, and none takes the room of another."""

from dataclasses import replace
from pathlib import Path

import pytest

from computer_linker.approvals.ledger import Ledger
from computer_linker.approvals.request import ApprovalRequest
from computer_linker.errors import LimitExceeded
from computer_linker.model.principal import Principal
from support.road import LOCAL, OWNER, Road, folder_scope

pytestmark = pytest.mark.anyio

SAME_ID = replace(LOCAL, session="session-2", connection="connection-2")


def question(number: int, who: Principal, length: int = 10) -> ApprovalRequest:
    return ApprovalRequest(f"ask{number}", "file.write", "app", f"{number}", "x" * length, *who.bound, None, 0.0, 60.0)


def put(ledger: Ledger, who: Principal, count: int, length: int = 10, start: int = 0) -> int:
    """Ask so many times; how many were taken."""
    taken = 0
    for number in range(start, start + count):
        try:
            ledger.ask(question(number, who, length))
            taken += 1
        except LimitExceeded:
            pass
    return taken


async def test_a_list_shows_no_question_of_another_conversation(tmp_path: Path) -> None:
    async with Road.open(tmp_path, [folder_scope(tmp_path / "root", confirm="all")]) as road:
        wanted = {"op": "file.write", "target": "a.txt", "input": {"content": "x"}}
        issued = await road.data("confirm.issue", input=wanted)
        others = [
            SAME_ID,
            replace(LOCAL, session="s"),
            replace(LOCAL, connection="c"),
            replace(SAME_ID, client=LOCAL.client),
            replace(LOCAL, id="oauth:x", proof="oauth", client=LOCAL.client, grants=frozenset({"app"})),
        ]
        for other in others:
            assert (await road.data("confirm.list", principal=other))["pending"] == [], other
        renamed = replace(LOCAL, client="Another name")
        for mine in (LOCAL, renamed, OWNER):
            listed = (await road.data("confirm.list", principal=mine))["pending"]
            assert [one["id"] for one in listed] == [issued["approvalId"]]


def test_a_conversation_that_floods_leaves_room_for_another_with_the_same_credential() -> None:
    ledger = Ledger()
    assert put(ledger, LOCAL, 100) < 50
    assert put(ledger, SAME_ID, 5, start=1000) == 5


def test_a_new_client_name_gives_no_new_room() -> None:
    ledger = Ledger()
    taken = sum(put(ledger, replace(LOCAL, client=f"name {n}"), 10, start=100 * n) for n in range(20))
    assert taken <= 50


@pytest.mark.parametrize("length", [10, 15_000_000], ids=["many", "long"])
def test_principals_that_fill_the_room_leave_some_for_another(length: int) -> None:
    ledger = Ledger()
    for number in range(8):
        for session in range(4):
            flooding = replace(LOCAL, id=f"oauth:{number}", session=str(session))
            put(ledger, flooding, 20, length, start=10_000 * number + 100 * session)
    honest = replace(LOCAL, id="honest")
    assert put(ledger, honest, 5, 100_000, start=900_000) == 5
    assert len(ledger.waiting(0.0)) <= 200 + 5 * 9


def test_one_principals_long_questions_do_not_fill_the_room() -> None:
    ledger = Ledger()
    assert put(ledger, LOCAL, 20, 4_000_000) == 4
    assert put(ledger, replace(LOCAL, id="other"), 2, 4_000_000, start=100) == 2
    assert put(ledger, replace(LOCAL, id="third"), 1, 24_000_000, start=200) == 1, "one that is long is asked about"
