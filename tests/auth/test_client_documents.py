"""A client that names itself by a document: fetched from a real server, within bounds, and never for long."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.auth.oauth.clients import ClientDocuments
from computer_linker.auth.oauth.provider import LinkerProvider, Pending
from computer_linker.auth.oauth.state import OAuthState
from support.certificates import Authority

pytestmark = pytest.mark.anyio


class Site:
    """An https server of the client's maker; `answer` is what it says to everyone, None that it says nothing."""

    def __init__(self, authority: Authority, answer: bytes | None) -> None:
        self.authority, self.answer = authority, answer
        self.came = 0
        self.has_come = anyio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/client.json"

    def documents(self, **options: Any) -> ClientDocuments:
        return ClientDocuments(ssl.create_default_context(cafile=str(self.authority.file)), **options)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came += 1
        self.has_come.set()
        try:
            await reader.readuntil(b"\r\n\r\n")
            if self.answer is None:
                await reader.read()
            else:
                writer.write(self.answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def site(folder: Path, answer: Any) -> AsyncIterator[Site]:
    it = Site(Authority(folder), None)
    own = it.authority.certificate("localhost")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own.file, own.key)
    server = await asyncio.start_server(it.talk, "127.0.0.1", 0, ssl=tls)
    it.port = server.sockets[0].getsockname()[1]
    it.answer = answer(it) if callable(answer) else answer
    try:
        yield it
    finally:
        server.close()


def document(it: Site, **changes: Any) -> bytes:
    about = {"client_id": it.url, "client_name": "Maker", "redirect_uris": ["https://maker.example/cb"], **changes}
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + json.dumps(about).encode()


async def test_a_right_document_is_taken_and_kept_for_a_while(tmp_path: Path) -> None:
    async with site(tmp_path, document) as it:
        documents = it.documents(allow_private=True)
        first = await documents.fetch(it.url)
        assert first is not None and (first.id, first.name) == (it.url, "Maker")
        assert await documents.fetch(it.url) == first and it.came == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda it: document(it, client_id="https://other.example/c.json"),
        lambda it: document(it, redirect_uris=["javascript:alert(1)"]),
        lambda it: document(it, redirect_uris=[]),
        lambda it: document(it, padding="x" * 6000),
        lambda it: b"HTTP/1.1 302 Found\r\nlocation: https://169.254.169.254/\r\n\r\n",
        lambda it: b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 5000,
        lambda it: b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        lambda it: b"\x16\x03\x01 nothing like HTTP",
    ],
    ids=["another id", "redirect", "no redirects", "too large", "moved", "too deep", "chunked", "no HTTP"],
)
async def test_anything_else_is_nobody(tmp_path: Path, answer: Any) -> None:
    """OAUTH-044 and its like."""
    async with site(tmp_path, answer) as it:
        assert await it.documents(allow_private=True).fetch(it.url) is None


async def test_an_address_inside_is_not_even_connected_to(tmp_path: Path) -> None:
    async with site(tmp_path, document) as it:
        assert await it.documents().fetch(it.url) is None
        assert it.came == 0


async def test_a_certificate_nobody_vouches_for_is_nobodys(tmp_path: Path) -> None:
    async with site(tmp_path, document) as it:
        assert await ClientDocuments(allow_private=True).fetch(it.url) is None


async def test_a_crowd_of_names_opens_few_connections_and_holds_up_nobody(tmp_path: Path) -> None:
    async with site(tmp_path, None) as it:
        documents = it.documents(allow_private=True)
        with anyio.fail_after(20):
            answers = await asyncio.gather(*[documents.fetch(f"{it.url}?{number}") for number in range(100)])
            assert answers == [None] * 100
            assert 0 < it.came <= 8
            it.answer = document(it)
            assert await documents.fetch(it.url) is not None, "and then there is room again"


@pytest.mark.parametrize(
    "tail", ["/../c.json", "/./c.json", "/a/../../c.json", "/a b.json", "/c.json#x", "/", "/c\n.json"]
)
async def test_a_name_that_could_be_written_otherwise_is_nobodys(tmp_path: Path, tail: str) -> None:
    async with site(tmp_path, lambda it: document(it, client_id=it.url.removesuffix("/client.json") + tail)) as it:
        assert await it.documents(allow_private=True).fetch(it.url.removesuffix("/client.json") + tail) is None
        assert it.came == 0


async def test_a_client_the_owner_consented_to_is_known_when_its_document_is_not_to_be_had(tmp_path: Path) -> None:
    """Else strangers who keep the fetching busy would end the sessions of others with it."""
    async with site(tmp_path, document) as it:
        provider = LinkerProvider(OAuthState(tmp_path), it.documents(allow_private=True, keep_s=0), lambda: "digest")
        client = await provider.find_client(it.url)
        assert client is not None
        asked = Pending(
            "handle", client, ["linker:read"], "https://maker.example/cb", None, "A" * 43, "r", "i", "csrf",
            expires_at=time.monotonic() + 60, owner_digest="digest",
        )  # fmt: skip
        provider.ask(asked)
        provider.consent(asked, ["linker:read"], ["app:fs:read"])
        it.answer = b"HTTP/1.1 503 Busy\r\n\r\n"
        assert await provider.find_client(it.url) is None
        known = await provider.get_client(it.url)
        assert known is not None and known.client_id == it.url
