"""A computer that is unpaired while it greets, or that does not let go of its link, has no access from then on."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from computer_linker.dispatch.live_sessions import LiveSessions
from computer_linker.errors import PermissionDenied
from computer_linker.transports.peer.frames import packed, unpacked
from computer_linker.transports.peer.table import PeerTable
from support.pair import Pair
from support.raw_link import begun_link, closed, false_host, greeting, raw_link
from support.sleepers import running
from support.waiting import until

pytestmark = pytest.mark.anyio


def _write(call_id: int) -> bytes:
    call = {"scope": "app", "op": "file.write", "target": "late.txt", "input": {"content": "x"}}
    return packed({"t": "call", "id": call_id, "key": f"key-{call_id:08}", "call": call})


async def _answers(link: ClientConnection) -> list[dict[str, Any]]:
    """Everything that the other side still says, until it closes the link or has answered."""
    heard: list[dict[str, Any]] = []
    with anyio.fail_after(20), suppress(ConnectionClosed):
        while not any(frame["t"] in ("reply", "error") for frame in heard):
            heard.append(unpacked(await link.recv()))
    return heard


def _name(pair: Pair) -> str:
    """What the laptop calls the desk."""
    (name,) = pair.server.table.peers
    return name


def _other_offer(pair: Pair) -> dict[str, Any]:
    """What the desk says of itself, under another name than when it was paired."""
    peer = pair.desk.app.services.use(PeerTable).find("laptop")
    return pair.routes.own(peer).offer().to_wire() | {"name": "another"}


def _is_gone(pair: Pair) -> bool:
    """Whether the laptop knows no computer any more, also after a restart, and nothing was written there."""
    stored = PeerTable(pair.laptop.home).peers
    return not pair.server.table.peers and not stored and not (pair.laptop.root / "late.txt").exists()


async def test_a_greeting_that_was_held_back_opens_nothing(pair: Pair) -> None:
    async with begun_link(pair) as (link, challenge):
        await pair.server.forget(_name(pair))
        await link.send(greeting(pair, challenge))
        await link.send(_write(1))
        assert not any(frame.get("t") == "reply" for frame in await _answers(link))
    assert _is_gone(pair)


async def test_a_changed_greeting_pairs_nothing_again(pair: Pair) -> None:
    async with begun_link(pair) as (link, challenge):
        await pair.server.forget(_name(pair))
        await link.send(greeting(pair, challenge, offer=_other_offer(pair)))
        await closed(link)
    assert _is_gone(pair)


async def test_a_link_that_is_being_closed_calls_nothing(pair: Pair) -> None:
    async with begun_link(pair) as (link, challenge):
        await link.send(greeting(pair, challenge))
        assert unpacked(await link.recv())["t"] == "hello"
        # As `peer remove` does it, but for the link, which is still open.
        pair.server.table.remove(_name(pair))
        await link.send(_write(1))
        heard = await _answers(link)
        assert not any(frame["t"] == "reply" for frame in heard), heard
    assert _is_gone(pair)


async def test_its_programs_end_before_a_link_that_does_not_close(pair: Pair) -> None:
    """Found: they ran on for as long as the other side did not answer the closing of its link."""
    sessions = pair.laptop.app.services.use(LiveSessions)
    async with raw_link(pair) as link, anyio.create_task_group() as group:
        start = {"scope": "app", "op": "command.start", "target": ".", "input": {"command": ["sleep", "60.7341"]}}
        await link.send(packed({"t": "call", "id": 1, "key": "key-00000001", "call": start}))
        (answer,) = [frame for frame in await _answers(link) if frame["t"] == "reply"]
        assert answer["envelope"]["ok"], answer
        await until(lambda: running("7341"))
        link.transport.pause_reading()
        group.start_soon(pair.server.forget, _name(pair))
        await until(lambda: not running("7341"))
        assert any(one.closes for one in sessions.listed()), "the link is still being closed"
        link.transport.resume_reading()
    assert _is_gone(pair)


async def test_a_link_of_an_old_pairing_restores_no_rights(pair: Pair) -> None:
    """Found: what such a link learnt of the other side was stored together with the rights of the old pairing."""

    async def silent(_link: ServerConnection, _frame: dict[str, Any]) -> None:
        return

    table = pair.desk.app.services.use(PeerTable)
    table.change(replace(table.find("laptop"), grants=("app",)))
    async with false_host(pair, silent, name="another"):
        old = await pair.routes.link("laptop")
        table.add(replace(table.find("laptop"), grants=("app:fs:read",)), sets_grants=True)
        with pytest.raises(PermissionDenied):
            await old.call({"scope": "app", "op": "file.read", "target": "a.txt"}, 20.0, None, is_safe=True)
        await old.aclose()
    now = table.find("laptop")
    assert now.refused and now.grants == ("app:fs:read",), now


async def test_fewer_rights_apply_to_a_link_that_is_open(pair: Pair) -> None:
    async with begun_link(pair) as (link, challenge):
        await link.send(greeting(pair, challenge))
        assert unpacked(await link.recv())["t"] == "hello"
        table = pair.server.table
        table.change(replace(table.find(_name(pair)), grants=("app:fs:read",)))
        await link.send(_write(1))
        answer = unpacked(await link.recv())
        assert answer["envelope"]["error"]["code"] == "permission_denied", answer
    assert not (pair.laptop.root / "late.txt").exists()
