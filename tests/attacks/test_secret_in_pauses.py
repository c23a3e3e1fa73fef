"""A host that waits in the middle of an answer: what has come is not released by time, so that no secret goes on in two parts."""

import asyncio
import base64
import random
import ssl
import string
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from computer_linker.model.network import parse_entry
from computer_linker.providers.network.command_secrets import CommandSecrets
from computer_linker.providers.network.gate import Gate
from computer_linker.providers.network.reach import Own, Reach, Rules
from computer_linker.vault.forms import forms_of
from computer_linker.vault.mask import Mask, MaskedStream, Replaced
from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.canary import CANARY, ENCODINGS, is_in
from support.certificates import Authority

HOST = "api.example.org"
_PAUSE_S = 0.5
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@dataclass
class Paused:
    """A host that answers with two parts, and a program's side of the connection to it."""

    parts: tuple[bytes, bytes]
    got: bytes = b""
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    reader: asyncio.StreamReader = field(default_factory=asyncio.StreamReader)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.got = await reader.readuntil(b"\r\n\r\n")
            writer.write(_HEAD + self.parts[0])
            await writer.drain()
            await self.goes_on.wait()
            writer.write(self.parts[1])
            await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def paused(folder: Path, *parts: bytes) -> AsyncIterator[Paused]:
    """The answer's head has come through the gate, and no more is read yet."""
    first, second = parts
    made, authority = Paused((first, second)), Authority(folder)
    certificate = authority.certificate(HOST)
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate.file, certificate.key)
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0, ssl=inside, ssl_shutdown_timeout=1)
    port = server.sockets[0].getsockname()[1]
    (folder / "home").mkdir()
    vault = Vault(folder / "home")
    trusted_by = authority.file.read_text()
    stored = StoredSecret(name="token", host=HOST, port=port, variable="TOKEN", authority=trusted_by, value=CANARY)
    vault.add(stored, replace=False)
    secrets = CommandSecrets(vault, lambda: ["token"])
    rules = Rules(False, (parse_entry(f"{HOST}:{port}=127.0.0.1"),))
    gate = Gate(Reach(lambda: rules, Own(frozenset, frozenset)), secrets=secrets.of)
    gate.listen(None)
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusted.load_verify_locations(cadata=secrets.authority.pem)
    with anyio.fail_after(60):
        made.reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
        try:
            writer.write(f"CONNECT {HOST}:{port} HTTP/1.1\r\n\r\n".encode())
            await made.reader.readuntil(b"\r\n\r\n")
            await writer.start_tls(trusted, server_hostname=HOST)
            token = secrets.environment()["TOKEN"]
            writer.write(f"GET / HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            assert b" 200 OK" in await made.reader.readuntil(b"\r\n\r\n")
            assert f"Bearer {CANARY}".encode() in made.got, "the host has the secret"
            yield made
        finally:
            writer.close()
            await gate.aclose()
            server.close()


@pytest.mark.anyio
@pytest.mark.parametrize("encoding", ["plain", "hex", "base64 after 1"])
async def test_a_secret_in_two_parts_never_comes(tmp_path: Path, encoding: str) -> None:
    body = b"seen: " + ENCODINGS[encoding](CANARY.encode()) + b"."
    at = len(body) // 2
    async with paused(tmp_path, body[:at], body[at:]) as made:
        early = b""
        with anyio.move_on_after(_PAUSE_S):
            early = await made.reader.read(1)
        made.goes_on.set()
        come = early + await made.reader.read(-1)
        assert len(come) == len(body) and not is_in(come)
        assert early == b"", "what may go on as a secret waits, however long"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "event",
    [b'data: {"text": "a"}\n\n', b'event: x\r\ndata: {"a": [1]}\r\n\r\n', b"data: [DONE]\n\n", b'{"done": 1}\n'],
)
async def test_an_event_comes_before_the_next_one(tmp_path: Path, event: bytes) -> None:
    async with paused(tmp_path, event, b"data: end") as made:
        assert await made.reader.readexactly(len(event)) == event
        made.goes_on.set()
        assert await made.reader.read(-1) == b"data: end"


def test_a_line_is_whole_only_where_no_encoding_goes_on() -> None:
    chosen = random.Random(5)
    for _ in range(20):
        secret = "tok_" + "".join(chosen.choices(string.ascii_letters + string.digits + string.punctuation, k=24)) + "}"
        mask = Mask([Replaced(secret, "[secret x]")])
        pieces = [form.content for form in forms_of(secret, is_deep=True)]
        pieces += [base64.encodebytes(secret.encode()), secret.encode().hex("\n", 4).encode()]
        for piece in pieces:
            for end in (b"", b"\n", b"\n\n", b"\r\n", b"\\n\n"):
                whole = piece[: chosen.randrange(1, len(piece))]
                stream = MaskedStream(mask)
                rest = piece[len(whole) :]
                shown = stream.feed(whole + end) + stream.whole_lines() + stream.feed(rest) + stream.finish()
                assert shown == mask.masked(whole + end + rest)


def test_a_secret_of_several_lines_is_held_whole() -> None:
    mask = Mask([Replaced("first}\nsecond-0123456789", "[secret x]")])
    stream = MaskedStream(mask)
    assert stream.feed(b"first}\n") + stream.whole_lines() == b""
    assert stream.feed(b"second-0123456789") + stream.finish() == b"[secret x]"
