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

from computer_linker.model.network import parse_entry
from computer_linker.providers.network.gate import Gate
from computer_linker.providers.network.passage import Passage
from computer_linker.providers.network.pour import join
from computer_linker.providers.network.reach import Own, Reach, Rules
from computer_linker.providers.network.stream import Stream
from support.named_server import named_server
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


@pytest.mark.parametrize(
    "first",
    [b"0033git-upload-pack /x.git\0host=localhost\0", b"\0\0\0\x08\x04\xd2\x16/", b"AMQP\0\0\x09\x01", b"*1\r\n"],
)
async def test_other_protocols_whose_client_speaks_first_are_carried(first: bytes) -> None:
    async def repeat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(len(first)))
        writer.close()

    async with gate() as made, await asyncio.start_server(repeat, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode() + first)
        with anyio.fail_after(60):
            assert (await reader.read(-1)).endswith(b"\r\n\r\n" + first)
        writer.close()


@pytest.mark.parametrize("request_", [b"CONNECT %b:443 HTTP/1.1\r\n\r\n", b"GET http://%b:443/ HTTP/1.1\r\n\r\n"])
async def test_a_name_that_is_not_resolved_is_reported(request_: bytes) -> None:
    seen: list[Passage] = []
    made = Gate(Reach(lambda: Rules(True), Own(frozenset, frozenset)), seen.append)
    made.listen(None)
    assert (await said(made, request_ % b"Secret.invalid")).startswith(b"HTTP/1.1 502")
    assert [(passage.host, passage.port, passage.verdict) for passage in seen] == [("secret.invalid", 443, "failed")]
    await made.aclose()


@pytest.mark.parametrize("is_direct", [False, True])
async def test_each_request_of_a_kept_connection_is_judged(is_direct: bool) -> None:
    with named_server() as server:
        entries = [parse_entry(f"kept.example:{server.port}=127.0.0.1")]
        made = Gate(Reach(lambda: Rules(False, tuple(entries)), Own(frozenset, frozenset)))
        made.listen(None)
        direct = socket.create_server(("127.0.0.1", 0))
        place = direct.getsockname()[1]
        made.serve(direct, lambda client: made.take(client, "kept.example", server.port))
        reader, writer = await asyncio.open_connection("127.0.0.1", place if is_direct else made.port)
        base = "" if is_direct else f"http://kept.example:{server.port}"
        asked = f"GET {base}/ HTTP/1.1\r\nHost: kept.example:{server.port}\r\n\r\n".encode()
        with anyio.fail_after(60):
            for _ in range(2):
                writer.write(asked)
                assert b"Hello" in await reader.readuntil(b"/ 0")
            entries[:] = [parse_entry("other.example")]
            writer.write(asked)
            assert (await reader.read(-1)).startswith(b"HTTP/1.1 403")
        assert len(server.seen) == 2
        writer.close()
        await made.aclose()


async def test_a_connection_that_ends_before_its_first_step_is_closed() -> None:
    made = Gate(Reach(lambda: Rules(True), Own(frozenset, frozenset)))
    ours, theirs = socket.socketpair()
    with ours:
        made.begin(theirs, made.greet)
        assert made.connections == 1
        await made.aclose()
        assert made.connections == 0 and theirs.fileno() == -1


async def test_the_owners_address_is_preferred_to_other_entries_of_the_name() -> None:
    entries = tuple(
        map(parse_entry, ("*.corp.internal:5432", "db.corp.internal:5432", "db.corp.internal:5432=127.0.0.9"))
    )
    reach = Reach(lambda: Rules(False, entries), Own(frozenset, frozenset))
    assert await reach.judge("db.corp.internal", 5432) == ("db.corp.internal", ["127.0.0.9"])


async def test_a_tunnel_outlives_the_limit_of_its_greeting() -> None:
    """Found: the seconds in which a client must name its host went on to count, and a busy connection was cut."""
    (one, far_one), (two, far_two) = socket.socketpair(), socket.socketpair()
    client = Stream(far_one)

    async def serve() -> None:
        with client.limit.held():
            client.limit.set(0.2)
            await join(client, Stream(far_two), lambda _size: None, lambda _size: None)

    served = asyncio.ensure_future(serve())
    for sock in (one, two):
        sock.setblocking(False)
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    with one, two, far_one, far_two:
        while time.monotonic() - began < 1:
            await loop.sock_sendall(two, b"x")
            assert await loop.sock_recv(one, 1) == b"x"
            assert not served.done()
        served.cancel()
