"""Which servers are used and how: TLS or nothing, credentials nobody else can read, and each machine on its own subjects alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.errors import InvalidRequest
from computer_linker.fleet import messages
from computer_linker.fleet.credentials import checked_url, credentials_of, new_user, user_of
from computer_linker.fleet.embedded import EmbeddedServer, free_port
from computer_linker.fleet.link import FleetLink, Wants
from computer_linker.fleet.settings import Invited, ServerAddress
from support.fleet import until
from support.nats import NatsServer, certificate

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def linked(
    place: ServerAddress, listens: str = "cl.v1.nothing", seat: str = "seat0000"
) -> AsyncIterator[tuple[FleetLink, list[Any]]]:
    heard: list[Any] = []

    async def keep(message: Any) -> None:
        heard.append(message)

    async def nothing() -> None:
        return None

    link = FleetLink(place, messages.inbox(seat), Wants({listens: keep}, nothing, nothing))
    link.start()
    try:
        yield link, heard
    finally:
        await link.aclose()


async def test_a_server_elsewhere_is_used_with_tls_and_a_certificate_that_holds(tmp_path: Path) -> None:
    shown, key = certificate(tmp_path, "right")
    other, _ = certificate(tmp_path, "wrong")
    server = NatsServer(tmp_path / "nats", tls={"cert_file": str(shown), "key_file": str(key)}).start()
    url = server.url.replace("nats://127.0.0.1", "tls://localhost")
    try:
        async with linked(ServerAddress(url=url, ca=str(shown))) as (link, _heard):
            assert await link.wait_up(20), link.problem
        for ca in (str(other), None):
            async with linked(ServerAddress(url=url, ca=ca)) as (link, _heard):
                problem = await until(lambda link=link: link.problem)  # type: ignore[misc]
                assert "CERTIFICATE_VERIFY_FAILED" in problem and not link.is_up
    finally:
        server.kill()


@pytest.mark.parametrize("said", ['"tls_required": false', '"tls_available": true', '"connect_urls": ["127.0.0.1:1"]'])
async def test_nothing_is_told_to_a_server_that_drops_tls_from_its_greeting(tmp_path: Path, said: str) -> None:
    told = bytearray()
    tried = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b'INFO {"server_id": "x", "version": "2.12.0", "headers": true, "max_payload": 1048576, "auth_required": true, "nonce": "abc", %s}\r\n'
            % said.encode()
        )
        await writer.drain()
        told.extend(await reader.read(4096))
        tried.set()
        writer.close()

    creds = tmp_path / "user.nk"
    creds.write_text(new_user().seed)
    creds.chmod(0o600)
    listener = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with linked(ServerAddress(url=f"tls://localhost:{port}", creds=str(creds))) as (link, _heard):
        async with asyncio.timeout(20):
            await tried.wait()
        assert not link.is_up and "TLS" in str(await until(lambda: link.problem))
    listener.close()
    assert bytes(told) == b""


async def test_each_machine_is_kept_to_its_own_subjects(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    hub, one, two = new_user(), new_user(), new_user()
    places = {}
    for name, user in (("hub", hub), ("one", one), ("two", two)):
        path = tmp_path / f"{name}.nk"
        path.write_text(user.seed)
        path.chmod(0o600)
        places[name] = path
    server = EmbeddedServer(tmp_path, free_port(), tuple)
    seats = [
        Invited(seat=f"{name}00000", name=name, server_key=user.public, secret="x", expires_at=9e9)
        for name, user in (("one", one), ("two", two))
    ]
    await server.start("hub00000", hub.public, seats[:1])
    url = f"nats://127.0.0.1:{server.port}"
    try:
        async with linked(ServerAddress(url=url, creds=str(places["two"]))) as (link, _heard):
            await until(lambda: link.problem)
            assert not link.is_up, "it has not been invited yet"
            await server.admit("hub00000", hub.public, seats)
            assert await until(lambda: link.is_up)
        calls = messages.calls("one00000")
        async with (
            linked(ServerAddress(url=url, creds=str(places["hub"])), messages.EVERY_PRESENCE, "hub00000") as (
                boss,
                present,
            ),
            linked(ServerAddress(url=url, creds=str(places["one"])), calls, "one00000") as (first, called),
            linked(ServerAddress(url=url, creds=str(places["two"])), calls, "two00000") as (second, stolen),
        ):
            for link in (boss, first, second):
                assert await link.wait_up(20), link.problem
            await until(lambda: second.problem)
            assert "ermission" in str(second.problem), "it listens to nothing of another's"
            await second.publish(messages.presence("one00000"), b"a lie")
            await second.publish(calls, b"an order")
            await second.publish(messages.audit("hub00000", "one00000"), b"a story")
            await second.flush()
            await first.publish(messages.presence("one00000"), b"here")
            await first.flush()
            await boss.publish(calls, b"a call")
            await until(lambda: called and present)
            assert [message.data for message in present] == [b"here"]
            assert [message.data for message in called] == [b"a call"]
            assert stolen == []
        async with linked(ServerAddress(url=url)) as (nobody, _heard):
            await until(lambda: nobody.problem)
            assert not nobody.is_up
    finally:
        await server.aclose()


@pytest.mark.parametrize(
    "url",
    [
        "nats://example.com",
        "http://127.0.0.1",
        "tls://",
        "tls://u:p@example.com",
        "tls://example.com/x",
        "tls://h:99999",
        "ws://127.0.0.1",
        "example.com",
        "nats://127.0.0.1.example.com",
    ],
)
def test_addresses_that_are_not_safe_are_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        checked_url(url)


def test_credentials_are_read_only_when_nobody_else_could(tmp_path: Path) -> None:
    user = new_user()
    path = tmp_path / "creds"
    block = f"-----BEGIN NATS USER JWT-----\neyJ.abc.def\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    path.write_text(block)
    for mode in (0o644, 0o640, 0o606):
        path.chmod(mode)
        with pytest.raises(InvalidRequest, match="chmod 600"):
            credentials_of(str(path))
    path.chmod(0o600)
    found = credentials_of(str(path))
    assert found is not None and (found.jwt, found.user.public) == ("eyJ.abc.def", user.public)
    for text in (
        "",
        "nothing",
        user.seed[:-1],
        "{}",
        '{"computerLinkerInvitation": 1}',
        "\x00",
        block.replace("JWT", "XYZ"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidRequest):
            credentials_of(str(path))
    with pytest.raises(InvalidRequest):
        credentials_of(str(tmp_path))


def test_a_seed_is_checked_to_the_last_letter() -> None:
    user = new_user()
    assert user_of(user.seed).public == user.public
    for at in (0, 1, 5, 30, 57):
        other = "A" if user.seed[at] != "A" else "B"
        with pytest.raises(InvalidRequest):
            user_of(user.seed[:at] + other + user.seed[at + 1 :])


def test_a_seed_has_one_spelling() -> None:
    """The last letter of 36 bytes in base32 has two spare bits; a decoder ignores them."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    seed = new_user().seed
    others = [letters[letters.index(seed[-1]) ^ spare] for spare in (1, 2, 3)]
    for letter in others:
        with pytest.raises(InvalidRequest):
            user_of(seed[:-1] + letter)
