"""Clients behind a paired computer or a hub: each is a principal of its own here, and shares the computer's limits (F8)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import PERSON, Answerer, Approvals
from computer_linker.approvals.standing import extents_of
from computer_linker.model.envelope import Call
from computer_linker.model.principal import FarClient, Principal, account_of, is_of, leaves_room, parse_far
from support.fleet import Fleet
from support.pair import Pair, events_of, open_pair
from support.road import LOCAL, Road, folder_scope
from support.waiting import until

pytestmark = pytest.mark.anyio
ONE = replace(LOCAL, client="one/1.0")
OTHER = Principal("oauth:client_other", "owner_token", "session-2", "connection-2", client="other/2.0")


class Near:
    """A computer whose clients call one far scope."""

    def __init__(self, road: Road, scope: str, far: Road) -> None:
        self.road, self.scope, self.far = road, scope, far

    async def call(self, who: Principal, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
        return await self.road.call(op, target, scope=self.scope, principal=who, **parts)


@pytest.fixture(params=["peer", "hub"])
async def near(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Near]:
    if request.param == "peer":
        async with open_pair(tmp_path) as pair:
            await pair.paired()
            yield Near(pair.desk, "laptop/app", pair.laptop)
    else:
        async with Fleet.open(tmp_path) as fleet:
            machine = await fleet.add("laptop")
            yield Near(fleet.hub_road, "laptop/app", machine.road)


async def test_no_client_takes_back_what_another_wrote(near: Near) -> None:
    """Found: `file.undo last` of one client of a hub took back another client's write."""
    written = await near.call(ONE, "file.write", "one.txt", input={"content": "kept"})
    assert written["ok"], written
    for given in ({"operationId": written["operationId"]}, {"operationId": "last"}, {"path": "one.txt"}):
        undone = await near.call(OTHER, "file.undo", input=given)
        assert not undone["ok"], undone
    assert (near.far.root / "one.txt").read_text() == "kept"
    assert (await near.call(ONE, "file.undo", input={"operationId": "last"}))["ok"]
    assert not (near.far.root / "one.txt").exists()


async def test_no_client_reads_stops_or_lists_anothers_process(near: Near) -> None:
    begun = await near.call(ONE, "command.start", ".", input={"command": ["python3", "-c", "input('mine')"]})
    assert begun["ok"], begun
    handle = begun["data"]["processId"]
    for op in ("command.read", "command.stop"):
        assert (await near.call(OTHER, op, handle))["error"]["code"] == "process_not_found"
    assert (await near.call(OTHER, "command.list"))["data"]["processes"] == []
    assert [one["processId"] for one in (await near.call(ONE, "command.list"))["data"]["processes"]] == [handle]
    assert (await near.call(ONE, "command.stop", handle))["ok"]


@pytest.mark.parametrize("near", ["peer"], indirect=True)  # the hub's scope has `history:all`
async def test_no_client_sees_anothers_events(near: Near) -> None:
    await near.call(ONE, "file.write", "one.txt", input={"content": "x"})
    seen = await near.call(OTHER, "history.timeline")
    assert "file.write" not in {event["op"] for event in seen["data"]["events"]}
    seen = await near.call(ONE, "history.timeline")
    assert "file.write" in {event["op"] for event in seen["data"]["events"]}


async def test_the_history_names_the_client_as_its_computers_claim(near: Near) -> None:
    await near.call(ONE, "file.write", "one.txt", input={"content": "x"})
    (event,) = await events_of(near.far, "file.write")
    assert event["principal"].startswith(("peer:", "fleet:")) and account_of(event["principal"]) != event["principal"]
    assert "one/1.0 at " in event["client"] and LOCAL.id not in event["principal"]


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Pair]:
    scope = folder_scope(tmp_path / "laptop" / "root", confirm="all")
    async with open_pair(tmp_path, [scope]) as pair:
        await pair.paired()
        yield pair


async def test_a_yes_to_one_client_is_no_yes_to_another(asking: Pair) -> None:
    """Found: a shape that was allowed for one client of a hub let another one's write through."""
    people = asking.laptop.app.services.use(Approvals)

    async def write(who: Principal, name: str) -> dict[str, Any]:
        parts: dict[str, Any] = {"scope": "laptop/app", "input": {"content": "x"}, "principal": who}
        return await asking.desk.call("file.write", name, **parts)

    assert (await write(ONE, "d.txt"))["error"]["code"] == "confirm_required"
    (asked,) = people.waiting()
    assert asked.asker.startswith("one/1.0 at desk") or "one/1.0 at " in asked.asker, asked.asker
    assert "shape" in extents_of(asked)
    await people.take(asked.id, "shape", Answerer(PERSON, "terminal"))
    assert (await write(OTHER, "d.txt"))["error"]["code"] == "confirm_required"
    assert not (asking.laptop.root / "d.txt").exists()
    assert (await write(ONE, "d.txt"))["ok"]


async def test_all_clients_of_a_computer_end_with_its_pairing(asking: Pair) -> None:
    people = asking.laptop.app.services.use(Approvals)
    for who in (ONE, OTHER):
        parts: dict[str, Any] = {"scope": "laptop/app", "input": {"content": "x"}, "principal": who}
        await asking.desk.call("file.write", "d.txt", **parts)
    assert len(people.waiting()) == 2
    await asking.server.forget("desk-id")
    assert people.waiting() == []


async def test_what_clients_asked_for_goes_with_the_link(asking: Pair) -> None:
    people = asking.laptop.app.services.use(Approvals)
    parts: dict[str, Any] = {"scope": "laptop/app", "input": {"content": "x"}, "principal": ONE}
    await asking.desk.call("file.write", "d.txt", **parts)
    assert people.waiting()
    await asking.routes.aclose()
    await until(lambda: not people.waiting())


async def test_a_computer_that_invents_clients_gets_no_more_room(asking: Pair) -> None:
    """The computer names its clients: a limit of one principal is the limit of all of them."""
    people = asking.laptop.app.services.use(Approvals)
    link = await asking.routes.link("laptop")
    codes = set()
    for number in range(60):
        call = {"scope": "app", "op": "file.write", "target": f"{number}.txt", "input": {"content": "x"}}
        reply = await link.call(call, 60, far=FarClient(f"{number:08x}", f"c{number}"))
        codes.add(reply.envelope["error"]["code"])
    assert len(people.waiting()) <= 50 and "limit_exceeded" in codes


@pytest.mark.parametrize(
    "value",
    [[], ["x"], ["0" * 8], ["0" * 8, 1], ["0" * 9, "n"], ["../../x", "n"], ["0" * 8, "n" * 201], {}, 7, "0" * 8],
)
def test_an_odd_client_is_refused(value: object) -> None:
    with pytest.raises(ValueError):
        parse_far(value)


def test_the_account_is_the_computer_and_nothing_else() -> None:
    assert account_of("peer:m-ab12/0123abcd") == "peer:m-ab12" and account_of("fleet:h-1/00000000") == "fleet:h-1"
    assert account_of("local:a/b") == "local:a/b" and account_of("owner") == "owner"
    assert is_of("peer:m/00000000", "peer:m") and is_of("peer:m", "peer:m") and is_of("x", None)
    assert not is_of("peer:m", "peer:m/00000000") and not is_of("peer:mm/00000000", "peer:m")


def test_clients_of_one_computer_leave_half_of_the_room_to_others() -> None:
    theirs = [f"peer:m/{number:08x}" for number in range(4)]
    assert leaves_room("peer:m/ffffffff", theirs[:3], 8) and not leaves_room("peer:m/ffffffff", theirs, 8)
    assert leaves_room("peer:n/ffffffff", theirs, 8) and leaves_room("local:me", ["local:me"] * 7, 8)


def test_no_client_sets_it_in_a_request() -> None:
    assert Call("app", "file.read").far is None
