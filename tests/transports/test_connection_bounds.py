"""The bounds on open HTTP connections: a new one has time to ask, and however many come, the count is kept."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest
import uvicorn

from computer_linker.transports.http.body import Receive, Scope, Send
from computer_linker.transports.http.connections import MAX_CONNECTIONS, MAX_WITH_NEW, protocol
from support.waiting import until

pytestmark = pytest.mark.anyio
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
    config = uvicorn.Config(app, http=made, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve([listener]))
    try:
        yield made, listener.getsockname()
    finally:
        server.should_exit = True
        await serving


async def _answered(link: socket.socket) -> bytes:
    link.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(link, _REQUEST)
    return await loop.sock_recv(link, 100)


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
