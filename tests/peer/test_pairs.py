"""Two computers: paired by a code, called by name, refused in every other case."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from computer_linker.errors import PermissionDenied
from computer_linker.model.principal import account_of
from computer_linker.service.fleet import FleetManager
from computer_linker.service.peers import PeerManager
from computer_linker.service.routing import ComputerRouter
from computer_linker.transports.peer.frames import packed, unpacked
from computer_linker.transports.peer.join import join
from computer_linker.transports.peer.pairing import grouped
from computer_linker.transports.peer.routes import PeerRoutes
from computer_linker.transports.peer.server import PeerServer
from computer_linker.transports.peer.table import PeerTable
from support.pair import Pair, events_of
from support.road import LOCAL, OWNER
from support.sleepers import running

pytestmark = pytest.mark.anyio


@pytest.fixture
def pair(unpaired: Pair) -> Pair:
    """These tests pair by themselves."""
    return unpaired


async def test_a_paired_computer_is_used_by_its_name(pair: Pair) -> None:
    await pair.paired()
    envelope = await pair.desk.call("file.read", "a.txt", scope="laptop/app")
    assert (envelope["ok"], envelope["data"]["content"], envelope["scope"]) == (True, "on the laptop", "laptop/app")
    written = await pair.desk.call("file.write", "b.txt", scope="laptop/app", input={"content": "from afar"})
    assert (written["ok"], written["effect"]) == (True, "confirmed")
    assert (pair.laptop.root / "b.txt").read_text() == "from afar"
    undone = await pair.desk.call("file.undo", scope="laptop/app", input={"operationId": written["operationId"]})
    assert undone["ok"], undone
    assert not (pair.laptop.root / "b.txt").exists()
    events = (await pair.laptop.data("history.timeline", principal=OWNER))["events"]
    assert {pair.caller} == {account_of(event["principal"]) for event in events if event["op"].startswith("file.")}


async def test_the_machine_acted_upon_has_the_last_word(pair: Pair) -> None:
    await pair.paired("app:fs:read")
    assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]
    refused: list[tuple[str, str, dict[str, Any]]] = [
        ("file.write", "b.txt", {"input": {"content": "x"}}),
        ("file.read", "../secret", {}),
        ("file.delete", "a.txt", {}),
    ]
    for op, target, parts in refused:
        envelope = await pair.desk.call(op, target, scope="laptop/app", **parts)
        assert envelope["error"]["code"] in ("permission_denied", "path_out_of_scope")
    assert [path.name for path in pair.laptop.root.iterdir()] == ["a.txt"]
    assert await pair.desk.code("file.read", "a.txt", scope="laptop/other") == "unknown_scope"


async def test_a_peer_gets_nothing_unless_it_was_given_something(pair: Pair) -> None:
    await pair.join(grouped(pair.server.invitations.make(()).code))
    assert await pair.desk.code("file.read", "a.txt", scope="laptop/app") == "unknown_scope"


@pytest.mark.parametrize("change", ["wrong", "used", "none"])
async def test_a_code_is_good_once_and_only_as_shown(pair: Pair, change: str) -> None:
    code = pair.server.invitations.make(("app",)).code if change != "none" else "A" * 26
    if change == "wrong":
        code = code[:-1] + ("A" if code[-1] != "A" else "B")
    if change == "used":
        await pair.join(code)
    with pytest.raises(PermissionDenied):
        await pair.join(code)
    assert len(pair.server.table.peers) == (1 if change == "used" else 0)


async def test_three_wrong_codes_void_the_right_one(pair: Pair) -> None:
    code = pair.server.invitations.make(("app",)).code
    for _ in range(3):
        with pytest.raises(PermissionDenied):
            await pair.join("B" * 26)
    with pytest.raises(PermissionDenied):
        await pair.join(code)


async def test_unpairing_ends_an_open_link_at_once(pair: Pair) -> None:
    await pair.paired()
    assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]
    (name,) = pair.server.table.peers
    await pair.server.forget(name)
    routes = pair.desk.app.services.use(PeerRoutes)
    link = await routes.link("laptop")
    with pytest.raises(Exception):  # noqa: B017
        await link.call({"scope": "app", "op": "file.read", "target": "a.txt"}, 3)


async def test_an_act_that_comes_again_with_its_key_is_done_once(pair: Pair) -> None:
    await pair.paired()
    routes = pair.desk.app.services.use(PeerRoutes)
    link = await routes.link("laptop")
    append = {
        "scope": "app",
        "op": "file.write",
        "target": "log.txt",
        "input": {"content": "x"},
        "options": {"append": True},
    }
    opened, until = await link._opened(5), asyncio.get_running_loop().time() + 20
    first, _ = await link._exchange(opened, "same-key-0001", {"call": append}, None, until)
    again, _ = await link._exchange(opened, "same-key-0001", {"call": append}, None, until)
    assert first["envelope"] == again["envelope"]
    assert (pair.laptop.root / "log.txt").read_text() == "x"


async def test_an_act_cut_off_by_a_partition_is_reported_as_not_known(pair: Pair) -> None:
    await pair.paired()
    link = await pair.desk.app.services.use(PeerRoutes).link("laptop")
    await link._opened(5)
    task = asyncio.ensure_future(
        link.call({"scope": "app", "op": "command.run", "target": ".", "input": {"command": ["sleep", "30"]}}, 4)
    )
    await asyncio.sleep(0)  # the call is written before the server ends
    await pair.server.aclose()
    with pytest.raises(Exception) as unknown:
        await task
    assert unknown.value.details["effect"] == "unverifiable"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xc1",
        b"\x80",
        packed({"t": "what"}),
        b"\x93" * 2000,
        packed({"t": "call"})[:-1],
        "text",
        b"\x82\xa1t\xa4call\xa1t\xa4call",
    ],
)
def test_what_is_no_frame_is_refused(raw: bytes | str) -> None:
    from computer_linker.errors import InvalidRequest

    with pytest.raises(InvalidRequest):
        unpacked(raw)


async def test_an_oauth_client_cannot_reach_other_computers(pair: Pair) -> None:
    await pair.paired()
    remote = replace(LOCAL, grants=frozenset({"app"}))
    assert await pair.desk.code("file.read", "a.txt", scope="laptop/app", principal=remote) == "unknown_scope"


async def test_a_new_pairing_gives_exactly_what_it_says(pair: Pair) -> None:
    await pair.paired("app")
    assert (await pair.desk.call("file.write", "b.txt", scope="laptop/app", input={"content": "1"}))["ok"]
    await pair.paired("app:fs:read")
    assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]
    assert (
        await pair.desk.code("file.write", "b.txt", scope="laptop/app", input={"content": "2"}) == "permission_denied"
    )
    await pair.join(grouped(pair.server.invitations.make(()).code))
    assert await pair.desk.code("file.read", "a.txt", scope="laptop/app") == "unknown_scope"
    assert (pair.laptop.root / "b.txt").read_text() == "1"
    given = [event["summary"]["given"] for event in await events_of(pair.laptop, "peer.pair")]
    assert given == ["app", "app:fs:read", "nothing"]


async def test_computers_paired_both_ways_stay_what_they_were_to_each_other(pair: Pair) -> None:
    await pair.paired("app")
    server = PeerServer(pair.desk.app.services, pair.desk.app.dispatcher)
    await server.listen("127.0.0.1", 0)
    assert server.address is not None
    address = f"127.0.0.1:{server.address[1]}"
    routes = pair.laptop.app.dispatcher.routes = pair.laptop.app.services.use(PeerRoutes)
    peer, _ = await join(address, server.invitations.make(("app:fs:read",)).code, routes.own(None))
    known = pair.laptop.app.services.use(PeerTable).add(peer)
    (pair.desk.root / "d.txt").write_text("on the desk")
    read = await pair.laptop.call("file.read", "d.txt", scope=f"{known.name}/app")
    assert read["data"]["content"] == "on the desk"
    written = await pair.desk.call("file.write", "b.txt", scope="laptop/app", input={"content": "x"})
    assert written["ok"], written["error"]
    await routes.aclose()
    await server.aclose()


async def test_what_a_computer_left_running_ends_when_it_is_unpaired(pair: Pair) -> None:
    await pair.paired()
    started = await pair.desk.call("command.start", ".", scope="laptop/app", input={"command": ["sleep", "60.7301"]})
    own = await pair.laptop.call("command.start", ".", input={"command": ["sleep", "60.7302"]})
    assert (started["ok"], own["ok"]) == (True, True)
    assert running("7301")
    await pair.server.forget("desk-id")
    assert not running("7301")
    assert running("7302")
    (event,) = await events_of(pair.laptop, "principal.end")
    assert (event["principal"], event["summary"], event["effect"]) == (pair.caller, {"ended": 1}, "confirmed")


async def test_a_refusal_of_a_paused_computer_says_which_it_is(pair: Pair) -> None:
    await pair.paired()
    services = pair.desk.app.services
    pair.desk.app.dispatcher.routes = ComputerRouter(services.use(PeerManager), services.use(FleetManager))
    pair.laptop.app.dispatcher.pause.begin(None)
    error = (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["error"]
    assert error["code"] == "paused" and error["message"].startswith("On laptop: The owner of this computer has paused")
    assert error["details"]["hint"].startswith("Wait, or ask the owner of laptop to run there")
