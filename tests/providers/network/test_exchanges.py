"""Requests of kept connections outside the loop: served as within it, and given back where they are not plain."""

import asyncio
import contextlib
import os
import resource
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from http.client import HTTPConnection, HTTPResponse

import anyio
import pytest

from computer_linker.errors import ConfigInvalid
from computer_linker.model.network import parse_entry
from computer_linker.providers.network.exchanges import request_pattern
from computer_linker.providers.network.gate import Gate
from computer_linker.providers.network.passage import Passage
from computer_linker.providers.network.reach import Own, Reach, Rules
from support.named_server import NamedServer, named_server
from support.waiting import until

pytestmark = pytest.mark.anyio
_HOST = "kept.example"
_THREAD = "gate-exchanges"


class Kept:
    """A kept connection through a gate, and what the gate reported."""

    def __init__(self, server: NamedServer, *, is_proxy: bool) -> None:
        self.server, self.is_proxy = server, is_proxy
        self.passages: list[Passage] = []
        self.entries = [parse_entry(f"{_HOST}:{server.port}=127.0.0.1")]
        self.fails: Exception | None = None
        """What the rules raise in the gate's thread."""
        self.gate = Gate(Reach(self._rules, Own(frozenset, frozenset)), self.passages.append)
        self.gate.listen(None)
        direct = socket.create_server(("127.0.0.1", 0))
        port = self.gate.port if is_proxy else direct.getsockname()[1]
        self.gate.serve(direct, lambda client: self.gate.take(client, _HOST, server.port))
        self.connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def _rules(self) -> Rules:
        if self.fails is not None and threading.current_thread().name == _THREAD:
            raise self.fails
        return Rules(False, tuple(self.entries))

    def _request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        base = f"http://{_HOST}:{self.server.port}" if self.is_proxy else ""
        self.connection.request(method, base + path, body, {"Host": f"{_HOST}:{self.server.port}"} | headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    async def asked(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        return await asyncio.to_thread(self._request, method, path, body, headers)

    async def raw(self, data: bytes) -> tuple[int, bytes]:
        """What answers these bytes on the same connection."""

        def exchanged() -> tuple[int, bytes]:
            self.connection.sock.sendall(data)
            answer = HTTPResponse(self.connection.sock)
            answer.begin()
            return answer.status, answer.read()

        return await asyncio.to_thread(exchanged)

    @property
    def paths(self) -> list[str]:
        return [request[1] for request in self.server.seen]


@contextlib.asynccontextmanager
async def kept(*, is_proxy: bool = False) -> AsyncIterator[Kept]:
    with named_server() as server:
        made = Kept(server, is_proxy=is_proxy)
        try:
            with anyio.fail_after(60):
                yield made
        finally:
            made.connection.close()
            await made.gate.aclose()


def _is_outside() -> bool:
    return any(thread.name == _THREAD for thread in threading.enumerate())


@pytest.mark.parametrize("is_proxy", [False, True])
async def test_kept_requests_are_served_and_counted(is_proxy: bool) -> None:
    async with kept(is_proxy=is_proxy) as made:
        bodies = [await made.asked(f"/{at}") for at in range(20)]
        host = f"{_HOST}:{made.server.port}"
        assert bodies == [(200, f"Hello {host} /{at} 0".encode()) for at in range(20)]
        assert _is_outside()
        assert made.paths == [f"/{at}" for at in range(20)]
        made.connection.close()
        await until(lambda: len(made.passages) == 1)
        assert made.passages[0].received == sum(len(body) for _, body in bodies)
        assert made.passages[0].sent > 20 * len("GET /1 HTTP/1.1")


@pytest.mark.parametrize("is_proxy", [False, True])
async def test_what_is_not_plain_is_served_in_between(is_proxy: bool) -> None:
    async with kept(is_proxy=is_proxy) as made:
        for _ in range(3):
            for at in range(3):
                assert (await made.asked(f"/{at}"))[1].endswith(f"/{at} 0".encode())
            assert (await made.asked("/put", "PUT", b"x" * 100_000))[1].endswith(b"/put 100000")
            assert await made.asked("/chunked") == (200, b"one two three")
            assert (await made.asked("/big?size=3000000"))[1] == bytes(3_000_000)
            assert await made.asked("/", "HEAD") == (200, b"")
            assert (await made.asked("/upgrade", Upgrade="h2c", Connection="Upgrade"))[0] == 200
        assert all("upgrade" not in map(str.lower, request[2]) for request in made.server.seen)


@pytest.mark.parametrize("is_proxy", [False, True])
async def test_a_revocation_applies_to_the_next_request(is_proxy: bool) -> None:
    async with kept(is_proxy=is_proxy) as made:
        for at in range(5):
            await made.asked(f"/{at}")
        assert _is_outside()
        made.entries[:] = [parse_entry("other.example")]
        assert (await made.asked("/after"))[0] == 403
        assert made.paths == [f"/{at}" for at in range(5)]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /x HTTP/1.1\r\nHost: other.example\r\n\r\n", 403),
        ("GET http://other.example/x HTTP/1.1\r\nHost: {host}\r\n\r\n", 403),
        ("GET /x HTTP/1.1\r\nHost: {host}\r\nHost: other.example\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: {host}\r\nA: b\r\n folded\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: {host}\r\nA : b\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: {host}\r\nA: b\nB: c\r\n\r\n", 400),
        ("CONNECT other.example:443 HTTP/1.1\r\nHost: {host}\r\n\r\n", 400),
    ],
)
async def test_a_bad_request_after_good_ones_reaches_nothing(head: str, status: int) -> None:
    async with kept() as made:
        for at in range(5):
            await made.asked(f"/{at}")
        assert _is_outside()
        answered = await made.raw(head.format(host=f"{_HOST}:{made.server.port}").encode())
        assert answered[0] == status
        assert made.paths == [f"/{at}" for at in range(5)]


async def test_pieces_of_requests_and_two_at_once() -> None:
    async with kept() as made:
        asked = f"GET /a HTTP/1.1\r\nHost: {_HOST}:{made.server.port}\r\n\r\n".encode()
        for at in range(5):
            await made.asked(f"/{at}")
        sock = made.connection.sock
        sock.sendall(asked[:20])
        assert (await made.raw(asked[20:]))[1].endswith(b"/a 0")
        for at in range(3):
            await made.asked(f"/{at}")
        # A second request before the first is answered.
        assert (await made.raw(asked + asked.replace(b"/a", b"/b")))[1].endswith(b"/a 0")
        assert (await made.raw(b""))[1].endswith(b"/b 0")


async def test_a_gate_that_closes_ends_what_waits_and_its_thread() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        passages: list[Passage] = []
        rules = Rules(False, (parse_entry(f"{_HOST}:{port}=127.0.0.1"),))
        gate = Gate(Reach(lambda: rules, Own(frozenset, frozenset)), passages.append)
        gate.listen(None)
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        with anyio.fail_after(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
            asked = f"GET http://{_HOST}:{port}/ HTTP/1.1\r\nHost: {_HOST}:{port}\r\n\r\n".encode()
            writer.write(asked)
            host, _ = await loop.sock_accept(listener)
            with host:
                for _ in range(4):
                    assert (await loop.sock_recv(host, 4096)).startswith(b"GET / HTTP/1.1")
                    await loop.sock_sendall(host, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    assert (await reader.readuntil(b"ok")).endswith(b"ok")
                    writer.write(asked)
                assert (await loop.sock_recv(host, 4096)).startswith(b"GET / HTTP/1.1")
                assert _is_outside()
                await gate.aclose()
                assert not _is_outside()
                with contextlib.suppress(ConnectionError):
                    assert await reader.read(-1) == b""
                assert await loop.sock_recv(host, 4096) == b""
        assert [passage.received for passage in passages] == [8]
        writer.close()


async def test_a_host_that_ended_the_connection_is_connected_to_anew() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        rules = Rules(False, (parse_entry(f"{_HOST}:{port}=127.0.0.1"),))
        gate = Gate(Reach(lambda: rules, Own(frozenset, frozenset)))
        gate.listen(None)
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        with anyio.fail_after(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
            for _ in range(3):
                for at in range(4):
                    writer.write(f"GET http://{_HOST}:{port}/ HTTP/1.1\r\nHost: {_HOST}:{port}\r\n\r\n".encode())
                    if at == 0:
                        host, _ = await loop.sock_accept(listener)
                    assert (await loop.sock_recv(host, 4096)).startswith(b"GET / HTTP/1.1")
                    await loop.sock_sendall(host, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    assert (await reader.readuntil(b"ok")).endswith(b"ok")
                host.close()
            writer.close()
            await gate.aclose()


@pytest.mark.parametrize("error", [ConfigInvalid("no config"), OSError(5, "broken"), BlockingIOError(11, "busy")])
async def test_rules_that_cannot_be_read_give_the_request_to_the_loop(error: Exception) -> None:
    async with kept() as made:
        for at in range(5):
            await made.asked(f"/{at}")
        assert _is_outside()
        made.connection.sock.settimeout(20)
        made.fails = error
        assert (await made.asked("/after"))[0] == 200
        made.fails = None
        for at in range(5):
            await made.asked(f"/{at}")
        assert _is_outside(), "the thread goes on"
        assert made.paths == [*(f"/{at}" for at in range(5)), "/after", *(f"/{at}" for at in range(5))]


@contextlib.contextmanager
def free_descriptors(count: int) -> Iterator[None]:
    """Leave this process so many descriptors; as many must be free at the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []

    def take_all() -> int:
        before = len(taken)
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        return len(taken) - before

    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 4, hard))
    try:
        take_all()
        for _ in range(count):
            os.close(taken.pop())
        yield
        assert take_all() == count
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)


@pytest.mark.parametrize("free", [0, 1, 2])
async def test_without_descriptors_the_loop_serves_all(free: int) -> None:
    async with kept() as made:
        await made.asked("/0")
        with free_descriptors(free):
            assert made.gate.exchanges() is None
            for at in range(1, 4):
                assert (await made.asked(f"/{at}"))[0] == 200
        assert not _is_outside()
        assert (await made.asked("/4"))[0] == 200 and _is_outside()


async def test_without_room_for_a_thread_nothing_stays_open() -> None:
    async with kept() as made:
        await made.asked("/0")
        before = threading.stack_size(1 << 46)
        try:
            with free_descriptors(3):
                assert made.gate.exchanges() is None
        finally:
            threading.stack_size(before)
        assert (await made.asked("/1"))[0] == 200


async def test_a_request_that_the_host_takes_in_parts_is_counted_whole() -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 100)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        port = listener.getsockname()[1]
        passages: list[Passage] = []
        rules = Rules(False, (parse_entry(f"{_HOST}:{port}=127.0.0.1"),))
        gate = Gate(Reach(lambda: rules, Own(frozenset, frozenset)), passages.append)
        gate.connected = lambda upstream: upstream.stream.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        gate.listen(None)
        loop, got = asyncio.get_running_loop(), 0
        with anyio.fail_after(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
            for at, filling in enumerate((1, 1, 1, 7000)):
                more = "a" * filling
                head = f"GET http://{_HOST}:{port}/ HTTP/1.1\r\nHost: {_HOST}:{port}\r\nX: {more}\r\n\r\n"
                writer.write(head.encode())
                if at == 0:
                    host, _ = await loop.sock_accept(listener)
                data = b""
                while not data.endswith(b"\r\n\r\n"):
                    data += await loop.sock_recv(host, 4096)
                got += len(data)
                await loop.sock_sendall(host, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await reader.readuntil(b"ok")
            writer.close()
            await until(lambda: len(passages) == 1)
            host.close()
            await gate.aclose()
        assert passages[0].sent == got


@pytest.mark.parametrize("path", ["plain", "connect"])
async def test_much_goes_through_unchanged(path: str) -> None:
    async with kept(is_proxy=path == "plain") as made:
        if path == "connect":
            made.connection = HTTPConnection("127.0.0.1", made.gate.port, timeout=60)
            made.connection.set_tunnel(_HOST, made.server.port)
        for size in (65_536, 65_537, 20_000_001):
            assert (await made.asked(f"/big?size={size}"))[1] == bytes(size)
        assert (await made.asked("/put", "PUT", b"x" * 20_000_001))[1].endswith(b" 20000001")


@pytest.mark.parametrize(
    "head",
    [
        b"HEAD / HTTP/1.1\r\nHost: a:1\r\n\r\n", b"GET / HTTP/1.0\r\nHost: a:1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a:1\r\nHost: a:1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a:1\r\nConnection: close\r\n\r\n", b"GET / HTTP/1.1\nHost: a:1\n\n",
        b"GET / HTTP/1.1\r\nHost: a:1\r\nX: \0\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a:1\r\nX: y \r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a:1\r\nTE: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a:1\r\nContent-Length: 0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a:1\r\nexpect: 100-continue\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a:1\r\n\r\nGET",
        b"GET / HTTP/1.1\r\nHost: a:1\r\nProxy-Authorization: x\r\n\r\n", b"GET  / HTTP/1.1\r\nHost: a:1\r\n\r\n",
        b"GET http://a:1/ HTTP/1.1\r\nHost: a:1\r\n\r\n", b"get / HTTP/1.1\r\nHost: a:1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a:1\r\nX: \x7f\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a:1\r\nConnection: x-a\r\n\r\n",
    ],
)  # fmt: skip
def test_heads_that_the_loop_must_judge(head: bytes) -> None:
    pattern = request_pattern(b"a:1", is_proxy=False)
    assert pattern.fullmatch(b"GET / HTTP/1.1\r\nA: b\r\nHost: a:1\r\nConnection: keep-alive\r\n\r\n")
    assert pattern.fullmatch(head) is None
