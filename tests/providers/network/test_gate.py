"""The gate itself: what it carries, what it refuses, and that rubbish does not hold it up."""

import asyncio
import contextlib
import socket
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from computer_linker.providers.network.gate import Gate
from computer_linker.providers.network.reach import Own, Reach, Rules
from computer_linker.providers.network.stream import Stream, join
from support.waiting import until
from support.web import web_server

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def gate(
    *, is_open: bool = True, ports: frozenset[int] = frozenset(), hosts: frozenset[str] = frozenset()
) -> AsyncIterator[Gate]:
    made = Gate(Reach(lambda: Rules(is_open), Own(lambda: ports, lambda: hosts)))
    made.listen(None)
    try:
        yield made
    finally:
        await made.aclose()


async def said(made: Gate, request: bytes, *, then: bytes = b"") -> bytes:
    """What the gate answers until it closes."""
    with anyio.fail_after(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        try:
            writer.write(request)
            found = b""
            if then:
                found = await reader.readuntil(b"\r\n\r\n")
                writer.write(then)
            writer.write_eof()
            return found + await reader.read(-1)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def test_requests_and_tunnels_are_carried() -> None:
    with web_server() as port:
        async with gate() as made:
            plain = await said(made, f"GET http://localhost:{port}/a HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert b"Hello from /a" in plain
            asked = f"GET /b HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
            tunnel = await said(made, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode(), then=asked)
            assert tunnel.startswith(b"HTTP/1.1 200 Connection established")
            assert b"Hello from /b" in tunnel
            assert made.taken_refusals() == []


@pytest.mark.parametrize(
    "target",
    ["127.0.0.1:{port}", "localhost:{port}", "[::ffff:127.0.0.1]:{port}", "own.example:443", "OWN.example.:443"],
)
async def test_ours_is_refused_by_any_name(target: str) -> None:
    with web_server() as port:
        async with gate(ports=frozenset({port}), hosts=frozenset({"own.example"})) as made:
            place = target.format(port=port)
            assert (await said(made, f"CONNECT {place} HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 403")
            assert (await said(made, f"GET http://{place}/ HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 403")
            assert len(made.taken_refusals()) == 1


async def test_a_closed_gate_resolves_no_name() -> None:
    async with gate(is_open=False) as made:
        assert b"403" in await said(made, b"CONNECT nowhere.invalid:443 HTTP/1.1\r\n\r\n")
        assert made.taken_refusals() == ["nowhere.invalid: this scope has no network"]


@pytest.mark.parametrize(
    "request_",
    [
        b"", b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET ftp://x/ HTTP/1.1\r\n\r\n", b"\xff\xfe\r\n\r\n",
        b"GET https://x/ HTTP/1.1\r\n\r\n", b"CONNECT HTTP/1.1\r\n\r\n", b"CONNECT x:99999 HTTP/1.1\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\n\r\n", b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n", b"A" * 200_000,
    ],
)  # fmt: skip
async def test_rubbish_is_answered_and_let_go(request_: bytes) -> None:
    async with gate() as made:
        with contextlib.suppress(ConnectionError):
            answer = await said(made, request_)
            assert answer == b"" or answer.startswith((b"HTTP/1.1 502", b"HTTP/1.1 403", b"HTTP/1.1 400"))
        await until(lambda: not made.connections)


async def test_it_ends_with_what_it_carries() -> None:
    with web_server() as port:
        async with gate() as made:
            reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
            writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
        with anyio.fail_after(60):
            assert await reader.read(-1) == b""
        writer.close()
        await writer.wait_closed()
        assert not made.connections


async def test_its_socket_may_lie_deep() -> None:
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base).joinpath(*["a-rather-long-name-of-a-folder"] * 6)
        folder.mkdir(parents=True)
        made = Gate(Reach(lambda: Rules(True), Own(frozenset, frozenset)))
        made.listen(folder)
        assert (folder / "gate.sock").is_socket()
        await made.aclose()


async def test_a_tunnel_lives_while_either_direction_moves_and_ends_when_none_does() -> None:
    (one, far_one), (two, far_two) = socket.socketpair(), socket.socketpair()
    moved: list[int] = []
    joined = asyncio.ensure_future(join(Stream(far_one), Stream(far_two), lambda _size: None, moved.append, idle_s=0.5))
    for sock in (one, two):
        sock.setblocking(False)
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    with one, two, far_one, far_two:
        while time.monotonic() - began < 2:
            await loop.sock_sendall(two, b"x")
            assert await loop.sock_recv(one, 1) == b"x"
            assert not joined.done()
        with anyio.fail_after(60):
            await joined
    assert sum(moved) > 1
