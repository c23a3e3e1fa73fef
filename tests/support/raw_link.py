"""Links made by hand: a paired machine, or a host, that says whatever a test wants it to say."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from computer_linker.transports.peer.frames import VERSION, packed, unpacked
from computer_linker.transports.peer.identity import client_context, server_context
from computer_linker.transports.peer.offer import own_offer
from computer_linker.transports.peer.table import PeerTable
from support.pair import Pair

Answer = Callable[[ServerConnection, dict[str, Any]], Awaitable[None]]


@asynccontextmanager
async def begun_link(pair: Pair) -> AsyncIterator[tuple[ClientConnection, dict[str, Any]]]:
    """A link made by hand with the desk's own key, and the challenge that it was sent; nothing was answered yet."""
    peer = pair.desk.app.services.use(PeerTable).find("laptop")
    context = client_context(pair.routes.own(peer).identity, peer.cert_pem)
    async with connect(
        f"wss://{pair.address}/", ssl=context, server_hostname="x", max_size=None, compression=None, proxy=None
    ) as link:
        yield link, unpacked(await link.recv())


def greeting(pair: Pair, challenge: dict[str, Any], **changed: Any) -> bytes:
    """The desk's HELLO, in which something may be changed."""
    peer = pair.desk.app.services.use(PeerTable).find("laptop")
    hello = {
        "t": "hello", "v": VERSION, "nonce": challenge["nonce"], "own": b"n" * 16, "machineId": "desk-id",
        "offer": pair.routes.own(peer).offer().to_wire(), **changed,
    }  # fmt: skip
    return packed(hello)


@asynccontextmanager
async def raw_link(pair: Pair, **changed: Any) -> AsyncIterator[ClientConnection]:
    """A link made by hand with the desk's own key, after a HELLO in which something may be changed."""
    async with begun_link(pair) as (link, challenge):
        await link.send(greeting(pair, challenge, **changed))
        if not changed:
            assert unpacked(await link.recv())["nonce"] == b"n" * 16
        yield link


async def closed(link: ClientConnection) -> None:
    """Return once the other side has closed it."""
    with anyio.fail_after(20), pytest.raises(ConnectionClosed):
        while True:
            await link.recv()


@asynccontextmanager
async def false_host(pair: Pair, answer: Answer, **changed: Any) -> AsyncIterator[None]:
    """In the laptop's place, with its key: it greets as the laptop does, but for what is changed, and answers as it likes."""
    services = pair.laptop.app.services
    (caller,) = pair.server.table.peers.values()

    async def handle(link: ServerConnection) -> None:
        await link.send(packed({"t": "challenge", "v": VERSION, "nonce": b"c" * 16}))
        hello = unpacked(await link.recv())
        offer = own_offer(services, caller).to_wire()
        told = {"t": "hello", "v": VERSION, "machineId": services.config.machine_id, "nonce": hello["own"], "boot": "b"}
        await link.send(packed({**told, "offer": {**offer, **changed}}))
        async for raw in link:
            frame = unpacked(raw)
            if frame["t"] == "call":
                await answer(link, frame)

    context = server_context(pair.server.identity, [caller.cert_pem])
    async with serve(handle, "127.0.0.1", 0, ssl=context, max_size=None, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        table = pair.desk.app.services.use(PeerTable)
        table.change(replace(table.find("laptop"), address=f"127.0.0.1:{port}"))
        try:
            yield
        finally:
            await pair.routes.aclose()
