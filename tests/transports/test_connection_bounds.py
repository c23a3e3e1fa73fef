"""The bounds on open HTTP connections: a new one has time to ask, and however many come, the count is kept."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest
import uvicorn

from computer_linker.transports.http.body import Receive, Scope, Send
from computer_linker.transports.http.connections import MAX_CONNECTIONS, MAX_KEPT, MAX_WITH_NEW, protocol
from support.waiting import until

pytestmark = pytest.mark.anyio
_KEPT = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
_REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def listening(time_to_ask_s: float) -> AsyncIterator[tuple[Any, tuple[str, int]]]:
    """A server with our protocol, and its address."""
    made = protocol()
    made.time_to_ask_s = time_to_ask_s

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(app, http=made, lifespan="off", log_config=None, timeout_keep_alive=1000)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve([listener]))
    try:
        yield made, listener.getsockname()
    finally:
        server.should_exit = True
        await serving


async def _answered(link: socket.socket, request: bytes = _REQUEST) -> bytes:
    link.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(link, request)
    return await loop.sock_recv(link, 1000)


async def test_a_client_that_has_not_asked_yet_is_not_cut_off_by_newer_ones() -> None:
    async with listening(1000) as (made, address):
        with ExitStack() as links:
            honest = links.enter_context(socket.create_connection(address))
            for _ in range(MAX_CONNECTIONS + 100):
                links.enter_context(socket.create_connection(address))
            await until(lambda: made.open_count == MAX_CONNECTIONS + 101)
            assert (await _answered(honest)).startswith(b"HTTP/1.1 204")


@pytest.mark.parametrize(("time_to_ask_s", "most"), [(1000, MAX_WITH_NEW), (0, MAX_CONNECTIONS)])
async def test_a_burst_of_connections_is_bounded(time_to_ask_s: float, most: int) -> None:
    """Also when they are all accepted in one turn of the event loop."""
    async with listening(time_to_ask_s) as (made, address):
        with ExitStack() as links:
            opened = [links.enter_context(socket.create_connection(address)) for _ in range(MAX_WITH_NEW + 200)]
            assert (await _answered(opened[-1])).startswith(b"HTTP/1.1 204")
            assert len(made.silent) <= most
            await until(lambda: made.open_count <= most)


async def test_clients_that_keep_their_connections_lose_none_above_the_bound() -> None:
    """Issue 19: keep-alive clients lost connections above 512. Those that cannot be kept are closed with their answer."""
    async with listening(0) as (made, address):
        with ExitStack() as links:
            kept, closed = [], 0
            for _ in range(MAX_CONNECTIONS + 100):
                link = links.enter_context(socket.create_connection(address))
                answer = await _answered(link, _KEPT)
                assert answer.startswith(b"HTTP/1.1 204")
                if b"connection: close" in answer.lower():
                    closed += 1
                    assert await asyncio.get_running_loop().sock_recv(link, 1) == b""
                else:
                    kept.append(link)
            assert len(kept) == made.open_count == MAX_KEPT and closed == MAX_CONNECTIONS + 100 - MAX_KEPT
            for link in kept:
                assert (await _answered(link, _KEPT)).startswith(b"HTTP/1.1 204")
