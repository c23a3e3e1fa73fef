"""A host that has a secret gives it back in every way it can: the program never gets it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from computer_linker.model.network import parse_entry
from computer_linker.providers.network.command_secrets import CommandSecrets
from computer_linker.providers.network.gate import Gate
from computer_linker.providers.network.passage import Passage
from computer_linker.providers.network.reach import Own, Reach, Rules
from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.canary import CANARY, COMPRESSED, ENCODINGS, is_in
from support.certificates import Authority
from support.waiting import until

pytestmark = pytest.mark.anyio
HOST, OTHER = "api.example.org", "other.example.org"


@dataclass
class Hosts:
    """The secret's host, which answers with `answer`, and keeps every byte it was sent; and another host."""

    port: int = 0
    other: int = 0
    answer: bytes = b""
    got: list[bytes] = field(default_factory=list)
    other_got: list[bytes] = field(default_factory=list)


@dataclass
class Scene:
    hosts: Hosts
    proxy: int
    trusted: ssl.SSLContext
    secrets: CommandSecrets
    vault: Vault
    passages: list[Passage]
    allowed: list[str]

    @property
    def placeholder(self) -> str:
        return self.secrets.environment()["TOKEN"]

    async def said(
        self, request: bytes, *, host: str = HOST, port: int = 0, name: str | None = HOST, check: bool = True
    ) -> bytes:
        """What comes back for a request through a CONNECT to the host, with TLS that names `name`; all bytes seen."""
        port = port or self.hosts.port
        with anyio.fail_after(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy)
            try:
                writer.write(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode("latin-1"))
                found = await reader.readuntil(b"\r\n\r\n")
                if b" 200 " not in found:
                    return found
                context = self.trusted
                if not check:
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                await writer.start_tls(context, server_hostname=name)
                writer.write(request)
                return found + await reader.read(-1)
            except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError) as error:
                return repr(error).encode()
            finally:
                writer.close()


def request(placeholder: str, path: str = "/", more: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {placeholder}\r\n{more}Connection: close\r\n\r\n".encode()


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    hosts, authority = Hosts(), Authority(tmp_path)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hosts.got.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(hosts.answer)
            await writer.drain()
            if b"Content-Length" in hosts.answer or b"chunked" in hosts.answer:
                hosts.got.append(await reader.read(-1))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hosts.other_got.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    servers = [
        await asyncio.start_server(serve, "127.0.0.1", 0, ssl=_server_context(authority, name), ssl_shutdown_timeout=1)
        for serve, name in ((answer, HOST), (keep, OTHER))
    ]
    hosts.port, hosts.other = (server.sockets[0].getsockname()[1] for server in servers)
    home = tmp_path / "home"
    home.mkdir()
    vault, allowed, passages = Vault(home), ["token"], list[Passage]()
    trusted_by = authority.file.read_text()
    vault.add(
        StoredSecret(name="token", host=HOST, port=hosts.port, variable="TOKEN", authority=trusted_by, value=CANARY),
        replace=False,
    )
    secrets = CommandSecrets(vault, lambda: allowed)
    entries = (parse_entry(f"{HOST}:{hosts.port}=127.0.0.1"), parse_entry(f"{OTHER}:{hosts.other}=127.0.0.1"))
    gate = Gate(Reach(lambda: Rules(False, entries), Own(frozenset, frozenset)), passages.append, secrets=secrets.of)
    gate.listen(None)
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusted.load_verify_locations(cadata=secrets.authority.pem)
    try:
        yield Scene(hosts, gate.port, trusted, secrets, vault, passages, allowed)
    finally:
        await gate.aclose()
        for server in servers:
            server.close()


def _server_context(authority: Authority, name: str) -> ssl.SSLContext:
    made = authority.certificate(name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.file, made.key)
    return context


def whole(body: bytes, fields: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (fields, len(body), body)


def in_chunks(body: bytes, size: int) -> bytes:
    parts = (body[at : at + size] for at in range(0, len(body), size))
    return (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
        + b"0\r\n\r\n"
    )


async def answered(scene: Scene, answer: bytes) -> bytes:
    scene.hosts.answer = answer
    said = await scene.said(request(scene.placeholder))
    assert f"Bearer {CANARY}".encode() in scene.hosts.got[0], "the host has the secret"
    assert not is_in(said), said[-3000:]
    return said


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_body_never_has_it(scene: Scene, encoding: str) -> None:
    body = ENCODINGS[encoding](CANARY.encode())
    said = await answered(scene, whole(body))
    assert b" 200 OK" in said and len(said.partition(b"200 OK")[2].partition(b"\r\n\r\n")[2]) == len(body)


@pytest.mark.parametrize("size", [1, 7, 30])
@pytest.mark.parametrize("encoding", [name for name in ENCODINGS if name != "between words"])
async def test_a_body_in_chunks_never_has_it(scene: Scene, encoding: str, size: int) -> None:
    said = await answered(scene, in_chunks(b"<" + ENCODINGS[encoding](CANARY.encode()) + b">", size))
    assert b" 200 OK" in said


@pytest.mark.parametrize("coding", COMPRESSED)
@pytest.mark.parametrize("encoding", ["plain", "base64 after 1", "hex", "between words", "in json"])
async def test_a_compressed_body_never_has_it(scene: Scene, encoding: str, coding: str) -> None:
    body = COMPRESSED[coding](ENCODINGS[encoding](CANARY.encode()))
    said = await answered(scene, whole(body, b"Content-Encoding: %b\r\n" % coding.encode()))
    assert b" 200 OK" in said and b"ncoding: gzip" not in said


@pytest.mark.parametrize("coding", [b"br", b"zstd", b"gzip, gzip", b"compress", b"x"])
async def test_a_body_that_cannot_be_read_does_not_come(scene: Scene, coding: bytes) -> None:
    said = await answered(scene, whole(CANARY.encode(), b"Content-Encoding: %b\r\n" % coding))
    assert b" 200 OK" not in said


@pytest.mark.parametrize(
    "encoding", [name for name in ENCODINGS if "wrapped" not in name and "16" not in name and "between" not in name]
)
@pytest.mark.parametrize("name", [b"X-Seen", b"Location"])
async def test_a_header_never_has_it(scene: Scene, encoding: str, name: bytes) -> None:
    field = ENCODINGS[encoding](CANARY.encode())
    said = await answered(scene, whole(b"", b"%b: %b\r\n" % (name, field)))
    assert b" 200 OK" in said


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 %b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: <https://x/%b>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 100 %b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n%b",
        b"HTTP/1.0 200 OK\r\n\r\n%b",
        b"HTTP/1.1 302 Found\r\nLocation: https://other.example.org/?t=%b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a=%b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n%b: x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;%b\r\na\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Seen: %b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTrailer: %b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n%b",
        b"%b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: \r\n %b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 99\r\n\r\n%b",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n%b",
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/99\r\nContent-Length: 0\r\nX: %b\r\n\r\n",
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer error=\"%b\"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 Error\r\nContent-Length: 35\r\n\r\n%b",
        b"HTTP/1.1 200 OK\r\nAlt-Svc: h3=\"%b\"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/2 200\r\n%b: 1\r\n\r\n",
        b"ICY 200 %b\r\n\r\n",
    ],
)  # fmt: skip
async def test_no_other_part_of_an_answer_has_it(scene: Scene, answer: bytes) -> None:
    await answered(scene, answer.replace(b"%b", CANARY.encode()))


async def test_a_part_of_an_answer_is_not_asked_for(scene: Scene) -> None:
    scene.hosts.answer = whole(b"here")
    await scene.said(request(scene.placeholder, more="Range: bytes=0-3\r\nIf-Range: x\r\nAccept-Encoding: br\r\n"))
    (got, *_) = scene.hosts.got
    assert b"range" not in got.lower() and b"accept-encoding: identity" in got.lower()


# Requests: the secret goes to its own host, in its own header, and nowhere else.

ELSEWHERE = [
    "GET /{p} HTTP/1.1\r\nHost: {h}\r\n\r\n",
    "GET /?token={p} HTTP/1.1\r\nHost: {h}\r\n\r\n",
    "GET /?token={p}&{p} HTTP/1.1\r\nHost: {h}\r\nAuthorization: Bearer x\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nX-Api-Key: {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nCookie: a={p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nReferer: https://x/{p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nProxy-Authorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nAuthorization2: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nX-Authorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\n{p}: x\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nHost: {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nConnection: authorization\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nAuthorization : Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\n Authorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nX: a\r\n\tAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nX: a\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nX: a\rAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nX: a\0Authorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {o}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}.\r\nHost: {o}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}@{o}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {o}#{h}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}:1\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: \uff41pi.example.org\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: api.example\u3002org\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\0.{o}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}%00.{o}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET http://{o}/ HTTP/1.1\r\nHost: {h}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET https://{o}/ HTTP/1.1\r\nHost: {h}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET http://{h}@{o}/ HTTP/1.1\r\nHost: {h}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "CONNECT {o}:443 HTTP/1.1\r\nHost: {h}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/2\r\nHost: {h}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "GET / HTTP/1.1 Authorization: {p}\r\nHost: {h}\r\n\r\n",
    "GET /\r\nAuthorization: Bearer {p} HTTP/1.1\r\nHost: {h}\r\n\r\n",
    "Authorization: Bearer {p}\r\nGET / HTTP/1.1\r\nHost: {h}\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {h}\r\nContent-Length: 5\r\nContent-Length: 6\r\nAuthorization: Bearer {p}\r\n\r\nabcde",
    "POST / HTTP/1.1\r\nHost: {h}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer {p}\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: xchunked\r\nAuthorization: Bearer {p}\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {h}\r\nContent-Length: 200\r\n\r\nGET / HTTP/1.1\r\nHost: {o}\r\nAuthorization: Bearer {p}\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: chunked\r\n\r\n1;{p}\r\na\r\n0\r\nAuthorization: Bearer {p}\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: chunked\r\nTrailer: authorization\r\n\r\n0\r\nAuthorization: {p}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nAuthorization: Bearer {half}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nAuthorization: Bearer {lower}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nAuthorization: Bearer {quoted}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nAuthorization: Bearer {hex}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nAuthorization: Basic !{p64}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nAuthorization: Digest {p64}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {h}\r\nX-Basic: Basic {p64}\r\n\r\n",
]


@pytest.mark.parametrize("text", ELSEWHERE, ids=range(len(ELSEWHERE)))
async def test_it_is_put_in_no_other_place(scene: Scene, text: str) -> None:
    import base64
    from urllib.parse import quote

    p = scene.placeholder
    given = {
        "p": p, "h": HOST, "o": OTHER, "half": p[: len(p) // 2], "lower": p.lower(), "quoted": quote(p, safe=""),
        "hex": p.encode().hex(), "p64": base64.b64encode(f"me:{p}".encode()).decode(),
    }  # fmt: skip
    scene.hosts.answer = whole(b"")
    await scene.said(text.format(**given).encode("utf-8"))
    assert not is_in(b"".join((*scene.hosts.got, *scene.hosts.other_got)))


@pytest.mark.parametrize(
    ("host", "name"),
    [
        (OTHER, OTHER), (OTHER, HOST), (OTHER, None), (HOST, OTHER), (HOST, "x.example.org"), ("127.0.0.1", HOST),
        ("127.0.0.1", None), ("[::1]", HOST), ("127.1", HOST), ("0x7f000001", HOST), ("localhost", HOST),
        (f"{HOST}.evil.org", HOST), (f"evil-{HOST}", HOST), (f"{HOST}\0", HOST), (f"\0{HOST}", HOST), (f"{HOST}%00", HOST),
        (f"{HOST}@{OTHER}", HOST), (f"{OTHER}@{HOST}", HOST), (f"{HOST}#", HOST), (f"{HOST}..", HOST), ("\xe0pi.example.org", HOST),
        ("api.example.org:443", HOST), ("*", HOST), ("", HOST), ("169.254.169.254", HOST),
    ],
)  # fmt: skip
@pytest.mark.parametrize("at", ["host", "other"])
async def test_no_other_host_gets_it(scene: Scene, host: str, name: str | None, at: str) -> None:
    port = scene.hosts.port if at == "host" else scene.hosts.other
    scene.hosts.answer = whole(b"")
    before = len(scene.hosts.got)
    await scene.said(request(scene.placeholder), host=host, port=port, name=name, check=False)
    assert not is_in(b"".join(scene.hosts.other_got))
    assert not is_in(b"".join(scene.hosts.got[before:]))


async def test_a_host_with_another_certificate_gets_nothing(scene: Scene, tmp_path: Path) -> None:
    scene.hosts.answer = whole(b"")
    stored = scene.vault.known("token")
    (tmp_path / "two").mkdir()
    stranger = Authority(tmp_path / "two").file.read_text()
    scene.vault.add(stored.model_copy(update={"authority": stranger}), replace=True)
    said = await scene.said(request(scene.placeholder))
    assert b"502 Bad Gateway" in said and b"not trusted" not in b"".join(scene.hosts.got) and scene.hosts.got == []
    assert scene.passages[-1].verdict == "failed"


async def test_a_secret_that_was_taken_back_is_sent_no_more(scene: Scene) -> None:
    scene.hosts.answer = b"HTTP/1.1 200 OK\r\n\r\nhere"
    scene.allowed.clear()
    said = await scene.said(request(scene.placeholder), check=False)
    assert said.endswith(b"here") and not is_in(b"".join(scene.hosts.got))


async def test_the_history_has_the_secrets_name(scene: Scene) -> None:
    scene.hosts.answer = whole(b"here")
    said = await scene.said(request(scene.placeholder))
    assert said.endswith(b"here")
    await until(lambda: bool(scene.passages))
    assert [(one.verdict, one.secrets, one.host) for one in scene.passages] == [("allowed", {"token"}, HOST)]


async def test_two_commands_have_two_placeholders_and_two_authorities(scene: Scene) -> None:
    other = CommandSecrets(scene.vault, lambda: ["token"])
    assert other.environment()["TOKEN"] != scene.placeholder and other.authority.pem != scene.secrets.authority.pem
    scene.hosts.answer = whole(b"")
    await scene.said(request(other.environment()["TOKEN"]))
    assert not is_in(b"".join(scene.hosts.got))
