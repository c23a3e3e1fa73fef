"""Links that break: acts are done once, copies go on where they were, and what cannot be known is said to be unknown."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from computer_linker.transports.peer.server import PeerServer
from computer_linker.transports.peer.table import PeerTable
from support.noise import noise
from support.pair import Pair, events_of
from support.proxy import Relay, relay_to
from support.waiting import until

pytestmark = pytest.mark.anyio
SIZE = 24 << 20


@pytest.fixture
async def relay(pair: Pair) -> AsyncIterator[Relay]:
    """The pair, with a network between them that can be cut."""
    async with relay_to(int(pair.address.rpartition(":")[2])) as made:
        table = pair.desk.app.services.use(PeerTable)
        table.change(replace(table.find("laptop"), address=made.address))
        yield made
        await pair.routes.aclose()


async def _under_way(pair: Pair, op: str) -> None:
    """Return once the laptop has begun to run it."""
    await until(lambda: pair.laptop.app.dispatcher.under_way)


async def test_an_act_goes_on_when_its_link_drops_and_its_answer_is_found_again(pair: Pair, relay: Relay) -> None:
    script = "sleep 1; echo done >> log.txt"
    act = asyncio.ensure_future(
        pair.desk.call("command.run", ".", scope="laptop/app", input={"command": ["sh", "-c", script]})
    )
    await _under_way(pair, "command.run")
    relay.cut()
    envelope = await act
    assert (envelope["ok"], envelope["data"]["exitCode"]) == (True, 0), envelope
    assert relay.cuts == 1
    assert (pair.laptop.root / "log.txt").read_text() == "done\n"
    assert len(await events_of(pair.laptop, "command.run")) == 1


async def test_a_host_that_was_started_anew_is_not_asked_to_do_it_again(pair: Pair, relay: Relay) -> None:
    act = asyncio.ensure_future(
        pair.desk.call(
            "command.run", ".", scope="laptop/app", input={"command": ["sh", "-c", "echo x >> log; sleep 9"]}
        )
    )
    await until(lambda: (pair.laptop.root / "log").exists())
    port = int(pair.address.rpartition(":")[2])
    await pair.server.aclose()
    # Another server with the same key and place, which remembers nothing of the first.
    again = PeerServer(pair.laptop.app.services, pair.laptop.app.dispatcher)
    await again.listen("127.0.0.1", port)
    try:
        envelope = await act
        assert (envelope["ok"], envelope["error"]["details"]["effect"]) == (False, "unverifiable"), envelope
        assert (pair.laptop.root / "log").read_text() == "x\n"
    finally:
        await pair.routes.aclose()
        await again.aclose()


@pytest.mark.parametrize("way", ["destinationScope", "sourceScope"])
async def test_a_copy_goes_on_where_its_connection_broke(pair: Pair, relay: Relay, way: str) -> None:
    content = noise(SIZE)
    source, target = (pair.desk, pair.laptop) if way == "destinationScope" else (pair.laptop, pair.desk)
    (source.root / "big.bin").write_bytes(content)
    relay.cut_after = SIZE // 2
    copied = await pair.desk.call("file.copy", "big.bin", input={"destination": "copy.bin", way: "laptop/app"})
    assert (copied["ok"], copied.get("effect")) == (True, "confirmed"), copied
    assert (target.root / "copy.bin").read_bytes() == content
    assert relay.cuts == 1
    assert relay.passed < SIZE * 3 // 2, "it was sent again from the start"


@pytest.mark.parametrize("way", ["destinationScope", "sourceScope"])
async def test_a_copy_that_cannot_go_on_leaves_nothing(pair: Pair, relay: Relay, way: str) -> None:
    source = pair.desk if way == "destinationScope" else pair.laptop
    (source.root / "big.bin").write_bytes(bytes(SIZE))
    before = _names(pair)

    async def break_it() -> None:
        await until(lambda: relay.passed >= SIZE // 3, step_s=0)
        relay.stop()

    breaking = asyncio.ensure_future(break_it())
    copied = await pair.desk.call("file.copy", "big.bin", input={"destination": "copy.bin", way: "laptop/app"})
    await breaking
    assert copied["ok"] is False
    assert copied["error"]["code"] == "provider_unavailable"
    await until(lambda: not pair.laptop.app.dispatcher.under_way)
    assert _names(pair) == before


async def test_a_source_that_changes_meanwhile_is_not_kept(pair: Pair, relay: Relay) -> None:
    (pair.desk.root / "big.bin").write_bytes(bytes(SIZE))

    async def change() -> None:
        await until(lambda: relay.passed >= SIZE // 3, step_s=0)
        with (pair.desk.root / "big.bin").open("ab") as file:
            file.write(b"more")

    changing = asyncio.ensure_future(change())
    copied = await pair.desk.call(
        "file.copy", "big.bin", input={"destination": "copy.bin", "destinationScope": "laptop/app"}
    )
    await changing
    assert copied["ok"] is False
    assert copied["error"]["code"] == "conflict"
    assert not (pair.laptop.root / "copy.bin").exists()


async def test_a_cancelled_copy_ends_on_both_sides_and_leaves_nothing(pair: Pair, relay: Relay) -> None:
    (pair.desk.root / "big.bin").write_bytes(bytes(SIZE))
    before = _names(pair)
    copying = asyncio.ensure_future(
        pair.desk.call("file.copy", "big.bin", input={"destination": "copy.bin", "destinationScope": "laptop/app"})
    )
    await until(lambda: relay.passed >= SIZE // 3, step_s=0)
    copying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying
    await until(lambda: not pair.laptop.app.dispatcher.under_way and _names(pair) == before)


def _names(pair: Pair) -> list[Path]:
    return sorted([*pair.desk.root.rglob("*"), *pair.laptop.root.rglob("*")])
