"""Attacks on the gate: every spelling of a host, and every message that two readers could read differently."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import partial

import anyio
import pytest

from computer_linker.model.network import parse_entry
from computer_linker.providers.network.gate import Gate
from computer_linker.providers.network.passage import Passage
from computer_linker.providers.network.reach import Own, Reach, Refused, Rules
from computer_linker.providers.network.resolver import Resolver
from support.named_server import NamedServer, named_server
from support.waiting import until

pytestmark = pytest.mark.anyio
GOOD, BAD = "good.example.org", "bad.example.org"


@pytest.fixture(scope="module")
def server() -> Iterator[NamedServer]:
    """Stands for the allowed host and, at the same address, for a host that is not allowed."""
    with named_server() as made:
        yield made


@dataclass
class Attacked:
    """A gate that allows one host, as a proxy at `proxy` and as that host itself at `direct`."""

    gate: Gate
    proxy: int
    direct: int
    port: int
    passages: list[Passage] = field(default_factory=list)

    async def said(self, *parts: bytes, direct: bool = False) -> bytes:
        """What the gate answers to these bytes, sent one after the other, until it closes."""
        with anyio.fail_after(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.direct if direct else self.proxy)
            found = b""
            with contextlib.suppress(ConnectionError):
                for part in parts[:-1]:
                    writer.write(part)
                    found += await reader.readuntil(b"\r\n\r\n")
                writer.write(parts[-1])
                writer.write_eof()
                found += await reader.read(-1)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return found


@pytest.fixture
async def attacked(server: NamedServer) -> AsyncIterator[Attacked]:
    passages: list[Passage] = []
    entries = tuple(map(parse_entry, (f"{GOOD}:{server.port}=127.0.0.1", f"*.wild.example:{server.port}")))
    gate = Gate(Reach(lambda: Rules(False, entries), Own(frozenset, frozenset)), passages.append)
    gate.listen(None)
    direct = socket.create_server(("127.0.0.1", 0))
    place = direct.getsockname()[1]
    gate.serve(direct, lambda client: gate.take(client, GOOD, server.port))
    yield Attacked(gate, gate.port, place, server.port, passages)
    await gate.aclose()


SPELLINGS = [
    BAD, "127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "127.1", "2130706433", "0x7f000001",
    "0177.0.0.1", "127.0.0.1.", "169.254.169.254", "[fd00:ec2::254]", "metadata.google.internal", f"{GOOD}.evil.org",
    f"evil-{GOOD}", f"{GOOD}\0.evil.org", f"evil.org\0{GOOD}", f"{GOOD}%00", "\uff47ood.example.org", "g\u043e\u043ed.example.org",
    f"{GOOD}@{BAD}", f"{BAD}@{GOOD}", f"user:pw@{GOOD}", f"{GOOD}\\@{BAD}", f"{GOOD}#", f"{GOOD}/", f"{GOOD}?", f"{GOOD},",
    f"{GOOD}..", f".{GOOD}", f"{GOOD}\t", f"\t{GOOD}", "", "*", "*.wild.example", "wild.example", "wild.example.",
    "a.wild.example.evil.org", f"[{GOOD}]", "0", "0.0.0.0", "[::]", "255.255.255.255", "224.0.0.1", "good.example。org",
    "xn--.example.org", "g" * 300, f"{GOOD}:443:{443}",
]  # fmt: skip


@pytest.mark.parametrize("host", SPELLINGS, ids=range(len(SPELLINGS)))
async def test_no_spelling_reaches_another_host(attacked: Attacked, server: NamedServer, host: str) -> None:
    before, port = len(server.seen), attacked.port
    wire = host.encode("utf-8")
    for request in (
        b"CONNECT %b:%d HTTP/1.1\r\n\r\n" % (wire, port),
        b"GET http://%b:%d/ HTTP/1.1\r\nHost: %b:%d\r\n\r\n" % (wire, port, wire, port),
        b"GET http://%b:%d/ HTTP/1.1\r\nHost: %b:%d\r\n\r\n" % (wire, port, GOOD.encode(), port),
    ):
        answer = await attacked.said(request)
        assert not answer.startswith(b"HTTP/1.1 200"), (request, answer)
    if len(wire) < 256:
        name = bytes((5, 1, 0, 5, 1, 0, 3, len(wire))) + wire + struct.pack(">H", port)
        assert (await attacked.said(name))[2:4] != b"\5\0"
    assert len(server.seen) == before
    assert all(passage.verdict == "refused" for passage in attacked.passages)


@pytest.mark.parametrize("host", [GOOD, GOOD.upper(), f"{GOOD}.", "Good.Example.Org"])
async def test_usual_spellings_of_the_allowed_host_are_one(attacked: Attacked, host: str) -> None:
    asked = f"GET http://{host}:{attacked.port}/ HTTP/1.1\r\nHost: {host}:{attacked.port}\r\nConnection: close\r\n\r\n"
    assert f"Hello {GOOD}:{attacked.port}".encode() in await attacked.said(asked.encode())


@pytest.mark.parametrize("port", [80, 443, 22, 1, 65535])
async def test_another_port_of_the_allowed_host_is_not_reached(attacked: Attacked, port: int) -> None:
    assert (await attacked.said(f"CONNECT {GOOD}:{port} HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 403")
    assert [passage.why for passage in attacked.passages] == [
        f"the network list of the scope has it without port {port}"
    ]


def _second(text: str) -> bytes:
    return text.format(good=GOOD, bad=BAD).encode("latin-1")


SPLITTINGS = [
    "GET / HTTP/1.1\r\nHost: {bad}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {good}\r\nHost: {bad}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {good}, {bad}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : {bad}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {good}\r\n Host: {bad}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {good}\nHost: {bad}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {good}\rHost: {bad}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {good}\r\nX: a\0b\r\n\r\n",
    "GET http://{bad}/ HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "GET http://{good}@{bad}/ HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "GET https://{good}/ HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "CONNECT {bad}:443 HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET / HTTP/2.0\r\nHost: {good}\r\n\r\n",
    "GET  / HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "GET /a b HTTP/1.1\r\nHost: {good}\r\n\r\n",
    "\r\n\r\nGET / HTTP/1.1\r\nHost: {bad}\r\n\r\n",
    " GET / HTTP/1.1\r\nHost: {bad}\r\n\r\n",
    "get / http/1.1\r\nHost: {bad}\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {good}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: {bad}\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {good}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    "POST / HTTP/1.1\r\nHost: {good}\r\nContent-Length: +5\r\n\r\nabcde",
    "POST / HTTP/1.1\r\nHost: {good}\r\nContent-Length: 5, 5\r\n\r\nabcde",
    "POST / HTTP/1.1\r\nHost: {good}\r\nTransfer-Encoding: xchunked\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {good}\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
    "POST / HTTP/1.0\r\nHost: {good}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {good}\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {good}\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {good}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {good}\r\nTransfer-Encoding: chunked\r\n\r\n1 \n\r\nx\r\n0\r\n\r\n",
    f"GET /{'a' * 9000} HTTP/1.1\r\nHost: {{bad}}\r\n\r\n",
    *(f"GET{space}/{space}HTTP/1.1\r\nHost: {{bad}}\r\n\r\n" for space in "\t\v\f\x1c\x1f\x85\xa0"),
    "\v\f\x1cGET / HTTP/1.1\r\nHost: {bad}\r\n\r\n",
    "GET /\x01\0 HTTP/1.1\r\nHost: {bad}\r\n\r\n",
]


@pytest.mark.parametrize("request_", SPLITTINGS, ids=range(len(SPLITTINGS)))
async def test_no_message_carries_a_request_for_another_host(
    attacked: Attacked, server: NamedServer, request_: str
) -> None:
    before = len(server.seen)
    connect = f"CONNECT {GOOD}:{attacked.port} HTTP/1.1\r\n\r\n".encode()
    for answer in (
        await attacked.said(_second(request_), direct=True),
        await attacked.said(connect, _second(request_)),
    ):
        assert b" 200 OK" not in answer, answer
    assert all(seen[2].get("host", "").startswith(GOOD) for seen in server.seen[before:])
    assert not any("bad" in str(seen) for seen in server.seen[before:])


async def test_a_second_request_of_a_connection_is_judged_like_the_first(
    attacked: Attacked, server: NamedServer
) -> None:
    first = f"POST /1 HTTP/1.1\r\nHost: {GOOD}:{attacked.port}\r\nContent-Length: 3\r\n\r\nabc".encode()
    second = f"GET /2 HTTP/1.1\r\nHost: {BAD}\r\n\r\n".encode()
    before = len(server.seen)
    answer = await attacked.said(first + second, direct=True)
    assert answer.count(b"HTTP/1.1 200") == 1 and b"HTTP/1.1 403" in answer
    assert [seen[1] for seen in server.seen[before:]] == ["/1"]


async def test_fields_of_the_connection_end_at_the_gate(attacked: Attacked, server: NamedServer) -> None:
    before = len(server.seen)
    fields = "Connection: X-Drop, close\r\nX-Drop: 1\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\nProxy-Authorization: x\r\nTE: trailers\r\nX-Keep: 2"
    await attacked.said(f"GET / HTTP/1.1\r\nHost: {GOOD}\r\n{fields}\r\n\r\n".encode(), direct=True)
    ((_, _, headers, _),) = server.seen[before:]
    assert headers == {"x-keep": "2", "host": f"{GOOD}:{attacked.port}"}


async def test_chunks_are_written_anew_and_bodies_arrive_whole(attacked: Attacked, server: NamedServer) -> None:
    before = len(server.seen)
    head = f"POST /p HTTP/1.1\r\nHost: {GOOD}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()
    body = (
        b"".join(b"%x;ext=1\r\n%b\r\n" % (size, b"x" * size) for size in (1, 10, 70_000)) + b"0\r\nTrailer: 1\r\n\r\n"
    )
    assert b"/p 70011" in await attacked.said(head + body, direct=True)
    assert server.seen[before:][0][3] == 70_011
    assert b"three" in await attacked.said(f"GET /chunked HTTP/1.1\r\nHost: {GOOD}\r\n\r\n".encode(), direct=True)
    head_only = await attacked.said(
        f"HEAD /h HTTP/1.1\r\nHost: {GOOD}\r\n\r\nGET /g HTTP/1.1\r\nHost: {GOOD}\r\n\r\n".encode(), direct=True
    )
    assert head_only.count(b"HTTP/1.1 200") == 2 and head_only.endswith(b"/g 0")


def hello(name: str | bytes) -> bytes:
    """A TLS hello for a name, as OpenSSL writes it; bytes replace the name in a hello of the same length."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    plain = name if isinstance(name, str) else "a" * len(name)
    client = context.wrap_bio(incoming, outgoing, server_hostname=plain or None) if plain else None
    if client is None:
        context.check_hostname = False
        client = context.wrap_bio(incoming, outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    made = outgoing.read()
    return made if isinstance(name, str) else made.replace(b"a" * len(name), name)


@pytest.mark.parametrize(
    "data",
    [
        hello(BAD), hello("localhost"), hello(f"{GOOD}.evil.org"), hello(b"good.example.org\0.evil.org"),
        hello(b"g\xc3\xb6od.example.org"), b"\x16\x03\x01\x00\x02\x02\x00", b"\x16\x03\x01\xff\xff" + b"x" * 70_000,
        b"\x16" + b"GET / HTTP/1.1\r\n\r\n", hello(BAD)[:60],
    ],
    ids=range(9),
)  # fmt: skip
async def test_a_hello_that_names_another_host_ends_there(attacked: Attacked, data: bytes) -> None:
    connect = f"CONNECT {GOOD}:{attacked.port} HTTP/1.1\r\n\r\n".encode()
    answer = await attacked.said(connect, data)
    assert answer.partition(b"\r\n\r\n")[2] in (b"", bytes((21, 3, 1, 0, 2, 2, 112)))
    await until(lambda: attacked.passages)
    assert sum(passage.sent for passage in attacked.passages) == 0


@pytest.mark.parametrize("name", [GOOD, GOOD.upper(), ""])
@pytest.mark.parametrize("cut", [0, 1, 5, 40])
async def test_a_hello_for_the_host_or_without_a_name_goes_on(attacked: Attacked, name: str, cut: int) -> None:
    connect = f"CONNECT {GOOD}:{attacked.port} HTTP/1.1\r\n\r\n".encode()
    data = hello(name)
    with anyio.fail_after(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", attacked.proxy)
        writer.write(connect)
        await reader.readuntil(b"\r\n\r\n")
        for part in (data[:cut], data[cut:]):
            writer.write(part)
            await writer.drain()
        await until(lambda: attacked.gate.connections == 1)
        writer.write_eof()
        await reader.read(-1)
        writer.close()
    await until(lambda: attacked.passages)
    assert attacked.passages[0].verdict == "allowed" and attacked.passages[0].sent == len(data)


async def test_a_redirect_is_followed_only_to_allowed_hosts(attacked: Attacked, server: NamedServer) -> None:
    to = f"http://{BAD}:{attacked.port}/secret"
    answer = await attacked.said(
        f"GET /redirect?to={to} HTTP/1.1\r\nHost: {GOOD}\r\nConnection: close\r\n\r\n".encode(), direct=True
    )
    assert b"302" in answer
    assert (await attacked.said(f"GET {to} HTTP/1.1\r\nHost: {BAD}\r\n\r\n".encode())).startswith(b"HTTP/1.1 403")
    assert not any(seen[1] == "/secret" for seen in server.seen)


async def test_a_name_is_resolved_once_and_that_address_is_connected_to() -> None:
    """The second answer of a rebinding resolver is never asked for."""
    own = Own(frozenset, frozenset)
    reach = Reach(lambda: Rules(False, (parse_entry("rebind.example:80"),)), own)
    reach._resolved["rebind.example"] = (float("inf"), ["93.184.216.34", "10.0.0.1"])
    with pytest.raises(Refused, match="private address") as refused:
        await reach.judge("rebind.example", 80)
    assert refused.value.entry == "rebind.example=10.0.0.1"
    reach._resolved["rebind.example"] = (float("inf"), ["93.184.216.34"])
    assert await reach.judge("REBIND.example.", 80) == ("rebind.example", ["93.184.216.34"])


PRIVATE = [
    "10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "0.0.0.0", "169.254.169.254", "100.64.0.1", "::1", "fe80::1", "fc00::1",
    "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "::ffff:169.254.169.254", "224.0.0.1", "100.100.100.200",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
async def test_no_public_name_leads_to_a_private_address(address: str) -> None:
    reach = Reach(lambda: Rules(False, (parse_entry("public.example"),)), Own(frozenset, frozenset))
    reach._resolved["public.example"] = (float("inf"), [address])
    with pytest.raises(Refused):
        await reach.judge("public.example", 443)


async def test_metadata_and_this_service_are_closed_even_when_listed() -> None:
    entries = tuple(map(parse_entry, ("169.254.169.254:80", "localhost:3939", "x.example:80=169.254.169.254")))
    reach = Reach(lambda: Rules(False, entries), Own(lambda: frozenset({3939}), frozenset))
    for host, port in (("169.254.169.254", 80), ("localhost", 3939), ("x.example", 80)):
        with pytest.raises(Refused) as refused:
            await reach.judge(host, port)
        assert refused.value.entry is None


def query(name: bytes, kind: int = 1, labels: list[bytes] | None = None) -> bytes:
    parts = labels if labels is not None else name.split(b".")
    wire = b"".join(bytes((len(part),)) + part for part in parts) + b"\0"
    return b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + wire + struct.pack(">HH", kind, 1)


def test_the_resolver_answers_allowed_names_and_no_other() -> None:
    refused: list[Refused] = []
    reach = Reach(lambda: Rules(False, (parse_entry(GOOD), parse_entry("*.wild.example"))), Own(frozenset, frozenset))
    resolver = Resolver(reach, refused.append)
    found = resolver.answer(query(GOOD.encode()))
    address = socket.inet_ntoa(found[-4:])
    assert found[3] & 15 == 0 and address.startswith("198.18.") and resolver.name_of(address) == GOOD
    assert resolver.answer(query(GOOD.upper().encode()))[-4:] == found[-4:]
    assert resolver.name_of(f"::ffff:{address}") == GOOD and resolver.name_of("127.8.8.8") == "localhost"
    for kind in (28, 16, 65, 15):
        assert resolver.answer(query(GOOD.encode(), kind))[6:8] == b"\0\0"
    bad = [
        query(b"data.evil.example"),
        query(b"wild.example"),
        query(b"", labels=[GOOD.encode()]),
        query(b"a\0b.wild.example"),
    ]
    assert [resolver.answer(each)[3] & 15 for each in bad] == [3, 3, 3, 3]
    assert {each.host for each in refused} >= {"data.evil.example", "wild.example"}
    for rubbish in (
        b"",
        b"\0" * 12,
        query(GOOD.encode())[:-3],
        b"\x12\x34\x81\0\0\1" + bytes(20),
        b"\x12\x34\1\0\0\1" + bytes(6) + b"\xc0\x0c" + bytes(4),
    ):
        assert resolver.answer(rubbish) == b""


async def test_many_and_slow_connections_do_not_keep_others_out(attacked: Attacked) -> None:
    """Slow ones wait for their deadline; above the bound new ones are closed at once; afterwards all is as before."""
    slow = [socket.create_connection(("127.0.0.1", attacked.proxy)) for _ in range(100)]
    for each in slow:
        each.sendall(b"GET http://")
    await until(lambda: attacked.gate.connections >= 100)
    asked = f"GET / HTTP/1.1\r\nHost: {GOOD}\r\nConnection: close\r\n\r\n".encode()
    assert b"Hello" in await attacked.said(asked, direct=True)
    for count in (150, 200, 256, 290):
        slow += [socket.create_connection(("127.0.0.1", attacked.proxy)) for _ in range(count - len(slow))]
        await until(partial(lambda least: attacked.gate.connections >= least, min(256, count)))
    assert attacked.gate.connections == 256
    for each in slow:
        each.close()
    await until(lambda: attacked.gate.connections == 0)
    assert b"Hello" in await attacked.said(asked, direct=True)
