"""Whoever is not the machine that was paired, or does not keep to the agreement, is refused and recorded; nothing happens."""

import asyncio
import socket
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from computer_linker.errors import Conflict, PermissionDenied
from computer_linker.service.peers import PeerManager
from computer_linker.transports.peer.bulk import MAGIC
from computer_linker.transports.peer.frames import MAX_FRAME, VERSION, packed, unpacked
from computer_linker.transports.peer.identity import client_context, own_identity, pairing_context
from computer_linker.transports.peer.link import PeerLink
from computer_linker.transports.peer.table import PeerTable
from support.pair import Pair, events_of
from support.raw_link import closed, raw_link
from support.waiting import until_awaited

pytestmark = pytest.mark.anyio
APPEND = {
    "scope": "app", "op": "file.write", "target": "log.txt", "input": {"content": "x"}, "options": {"append": True},
}  # fmt: skip


async def recorded(pair: Pair, who: str, rule: str) -> None:
    async def is_there() -> bool:
        return (who, rule) in await pair.refusals()

    await until_awaited(is_there)


async def test_a_machine_without_a_paired_key_is_refused_and_recorded(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "stranger").mkdir(mode=0o700)
    peer = pair.desk.app.services.use(PeerTable).find("laptop")
    own = replace(pair.routes.own(None), identity=own_identity(tmp_path / "stranger", "desk-id"))
    link = PeerLink(own, peer)
    with pytest.raises(PermissionDenied):
        await link.call(APPEND, 15)
    await link.aclose()
    assert ("unpaired", "unpaired") in await pair.refusals()
    assert not (pair.laptop.root / "log.txt").exists()


async def test_a_host_with_another_key_gets_nothing(pair: Pair, tmp_path: Path) -> None:
    """Somebody answers at the laptop's address who does not hold its key."""
    (tmp_path / "liar").mkdir(mode=0o700)
    other = own_identity(tmp_path / "liar", "test-machine")
    table = pair.desk.app.services.use(PeerTable)
    table.change(replace(table.find("laptop"), cert_pem=other.cert_pem))
    envelope = await pair.desk.call("file.write", "log.txt", scope="laptop/app", input={"content": "x"})
    assert (envelope["error"]["code"], envelope["error"]["details"]["rule"]) == ("permission_denied", "other_key")
    assert not (pair.laptop.root / "log.txt").exists()
    (event,) = [one for one in await events_of(pair.desk, "file.write") if one["scope"] == "laptop/app"]
    assert (event["ok"], event["errorCode"], event["reason"]) == (False, "permission_denied", "other_key")


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"machineId": "someone-else"}, "other_name"),
        ({"machineId": None}, "other_name"),
        ({"v": 1}, "version"),
        ({"nonce": b"m" * 16}, "replayed_hello"),
        ({"nonce": None}, "replayed_hello"),
        ({"offer": {}}, "malformed_hello"),
        ({"t": "call"}, "version"),
    ],
)
async def test_a_greeting_that_is_not_right_is_refused_and_recorded(
    pair: Pair, changed: dict[str, Any], rule: str
) -> None:
    async with raw_link(pair, **changed) as link:
        await closed(link)
    assert (pair.caller, rule) in await pair.refusals()


async def test_a_recorded_greeting_opens_nothing(pair: Pair) -> None:
    """PEER-014: what one connection said is worth nothing on another."""
    peer = pair.desk.app.services.use(PeerTable).find("laptop")
    own = pair.routes.own(peer)
    context = client_context(own.identity, peer.cert_pem)
    recorded = b""
    for _ in range(2):
        async with connect(
            f"wss://{pair.address}/", ssl=context, server_hostname="x", compression=None, proxy=None
        ) as link:
            challenge = unpacked(await link.recv())
            hello = {
                "t": "hello",
                "v": VERSION,
                "own": b"n" * 16,
                "machineId": "desk-id",
                "offer": own.offer().to_wire(),
            }
            recorded = recorded or packed({**hello, "nonce": challenge["nonce"]})
            await link.send(recorded)
            try:
                assert unpacked(await link.recv())["t"] == "hello"
            except ConnectionClosed:
                break
    else:
        pytest.fail("the recorded greeting was taken")
    assert (pair.caller, "replayed_hello") in await pair.refusals()


async def test_a_frame_that_comes_again_is_refused_and_done_once(pair: Pair) -> None:
    frame = packed({"t": "call", "id": 1, "key": "key-number-1", "call": APPEND})
    async with raw_link(pair) as link:
        await link.send(frame)
        assert unpacked(await link.recv())["envelope"]["ok"]
        await link.send(frame)
        await closed(link)
    assert (pair.laptop.root / "log.txt").read_text() == "x"
    assert (pair.caller, "replayed_frame") in await pair.refusals()


async def test_a_key_cannot_be_used_for_another_request(pair: Pair) -> None:
    async with raw_link(pair) as link:
        await link.send(packed({"t": "call", "id": 1, "key": "key-number-1", "call": APPEND}))
        assert unpacked(await link.recv())["envelope"]["ok"]
        other = {**APPEND, "target": "other.txt"}
        await link.send(packed({"t": "call", "id": 2, "key": "key-number-1", "call": other}))
        await closed(link)
    assert not (pair.laptop.root / "other.txt").exists()
    assert (pair.caller, "replayed_key") in await pair.refusals()


async def test_a_frame_that_is_too_large_ends_the_link_and_is_recorded(pair: Pair) -> None:
    async with raw_link(pair) as link:
        await link.send(bytes(MAX_FRAME + 1))
        await closed(link)
    async with raw_link(pair) as link:
        # A large frame that is within the limit is taken from a machine that is known.
        big = {**APPEND, "input": {"content": "x" * 1_000_000}}
        await link.send(packed({"t": "call", "id": 1, "key": "key-number-2", "call": big}))
        assert unpacked(await link.recv())["envelope"]["ok"]
    await recorded(pair, pair.caller, "oversized_frame")
    assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]


@pytest.mark.parametrize(
    "frame",
    [
        b"\xc1" * 40,
        packed({"t": "reply", "id": 1}),
        packed({"t": "call", "id": 0, "key": "key-number-1", "call": APPEND}),
        packed({"t": "call", "id": 1, "key": "short", "call": APPEND}),
        packed({"t": "call", "id": 1, "key": "key-number-1"}),
        packed({"t": "call", "id": 1, "key": "key-number-1", "on": "facets", "call": {"method": "os.system"}}),
        packed({"t": "credit", "id": 1, "n": -1}),
        packed({"t": "credit", "id": 1, "n": 1 << 40}),
    ],
)
async def test_what_is_no_frame_of_ours_ends_the_link_and_is_recorded(pair: Pair, frame: bytes) -> None:
    async with raw_link(pair) as link:
        await link.send(frame)
        await closed(link)
    assert (pair.caller, "malformed_frame") in await pair.refusals()
    assert not (pair.laptop.root / "log.txt").exists()


async def test_a_host_that_offers_more_than_at_pairing_is_refused_until_accepted(reading_pair: Pair) -> None:
    """The laptop's owner gives the desk more; the desk's owner has to know."""
    pair = reading_pair
    (name,) = pair.server.table.peers
    pair.server.table.change(replace(pair.server.table.peers[name], grants=("app",)))
    envelope = await pair.desk.call("file.read", "a.txt", scope="laptop/app")
    assert (envelope["error"]["code"], envelope["error"]["details"]["rule"]) == ("permission_denied", "manifest")
    (event,) = [one for one in await events_of(pair.desk, "file.read") if one["scope"] == "laptop/app"]
    assert (event["ok"], event["reason"]) == (False, "manifest")
    assert not await events_of(pair.laptop, "file.read")
    pair.desk.app.services.use(PeerTable).accept("laptop")
    assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]


async def test_what_is_accepted_is_what_was_looked_at(reading_pair: Pair) -> None:
    """A machine that asks for little, is looked at, and then for all, gets neither."""
    pair, peers = reading_pair, PeerManager(reading_pair.desk.app.services)
    (name,) = pair.server.table.peers

    async def offered(*grants: str) -> tuple[list[str], str]:
        pair.server.table.change(replace(pair.server.table.peers[name], grants=grants))
        await pair.routes.aclose()
        assert await pair.desk.code("file.read", "a.txt", scope="laptop/app") == "permission_denied"
        return peers.changed("laptop")[1:]

    changes, word = await offered("app:fs:read", "app:fs:write")
    assert changes == ["its scope app now offers fs:write"]
    everything, later = await offered("app")
    assert "command:run" in everything[0]
    with pytest.raises(Conflict):
        peers.accept("laptop", word)
    assert await pair.desk.code("file.read", "a.txt", scope="laptop/app") == "permission_denied"
    assert not peers.accept("laptop", later)[0].refused
    assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]


async def test_a_host_that_offers_less_is_still_the_one_that_was_paired(pair: Pair) -> None:
    (name,) = pair.server.table.peers
    pair.server.table.change(replace(pair.server.table.peers[name], grants=("app:fs:read",)))
    assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]


@pytest.mark.parametrize("field", ["name", "system", "architecture"])
async def test_a_caller_that_became_another_machine_is_refused_until_accepted(pair: Pair, field: str) -> None:
    peer = pair.desk.app.services.use(PeerTable).find("laptop")
    offer = {**pair.routes.own(peer).offer().to_wire(), field: "other"}
    async with raw_link(pair, offer=offer) as link:
        await closed(link)
    assert (pair.caller, "manifest") in await pair.refusals()
    pair.server.table.accept("desk-id")
    async with raw_link(pair, offer=offer) as link:
        assert unpacked(await link.recv())["t"] == "hello"


async def test_a_stream_without_its_ticket_is_not_let_in(pair: Pair) -> None:
    peer = pair.desk.app.services.use(PeerTable).find("laptop")
    context = client_context(pair.routes.own(peer).identity, peer.cert_pem)

    def knock() -> bytes:
        raw = socket.create_connection(("127.0.0.1", int(peer.address.rpartition(":")[2])), timeout=10)
        raw.sendall(MAGIC)
        with context.wrap_socket(raw, server_hostname="x") as link:
            link.sendall(bytes(32) + bytes(8))
            try:
                return link.recv(8)
            except ssl.SSLError:
                return b""

    assert await anyio.to_thread.run_sync(knock) == b""
    await recorded(pair, "unpaired", "bad_ticket")


async def test_a_connection_that_says_nothing_does_not_keep_others_out(pair: Pair) -> None:
    port = int(pair.address.rpartition(":")[2])
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
    try:
        with anyio.fail_after(60):
            assert (await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"]
    finally:
        for _, writer in silent:
            writer.close()


async def test_a_stranger_can_send_no_large_frame(pair: Pair) -> None:
    peer = pair.desk.app.services.use(PeerTable).find("laptop")
    pair.server.invitations.make(())
    async with connect(
        f"wss://{pair.address}/", ssl=pairing_context(), server_hostname="x", compression=None, proxy=None
    ) as link:
        told = unpacked(await link.recv())
        assert told.keys() == {"t", "v", "machineId", "name", "cert", "nonce"}
        await link.send(bytes(100_000))
        await closed(link)
    assert len(pair.server.table.peers) == 1
    assert peer.name == "laptop"


async def test_more_calls_than_a_link_takes_wait_their_turn(pair: Pair) -> None:
    done: list[bool] = []

    async def read() -> None:
        done.append((await pair.desk.call("file.read", "a.txt", scope="laptop/app"))["ok"])

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(150):
                group.start_soon(read)
    assert done == [True] * 150
