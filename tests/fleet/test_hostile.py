"""A server or neighbour that forges, alters, repeats, redirects or bloats messages runs nothing, and is recorded."""

import json
import secrets
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from computer_linker.fleet import messages
from computer_linker.fleet.member import Member
from computer_linker.fleet.messages import CallBody
from computer_linker.fleet.seal import Signer
from computer_linker.fleet.settings import AllowedHub
from computer_linker.fleet.streams import MAX_REQUEST
from computer_linker.transports.peer.identity import own_identity
from support.fleet import Fleet, Machine, refusals, until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet.open(tmp_path) as made:
        yield made


WRITE = {"scope": "app", "op": "file.write", "target": "x.txt", "input": {"content": "x"}, "options": {"append": True}}


def body_for(machine: Machine, **changed: Any) -> dict[str, Any]:
    """A request as the hub would write it."""
    now = time.time()
    return {
        "to": machine.member._signer.fingerprint, "epoch": machine.member._epoch, "nonce": secrets.token_hex(16),
        "key": secrets.token_hex(16), "at": now, "until": now + 30, "callId": secrets.token_hex(16), "call": WRITE, **changed,
    }  # fmt: skip


def stranger(tmp_path: Path) -> Signer:
    home = tmp_path / "stranger"
    home.mkdir(mode=0o700, exist_ok=True)
    return Signer(own_identity(home, "hub-id"))


async def give(fleet: Fleet, machine: Machine, raw: bytes, count: int) -> list[str]:
    """Send these bytes to the machine; the reasons once it has refused so many."""
    async with fleet.wiretap("cl.v1.nothing") as (link, _):
        await link.publish(messages.calls(machine.joined.seat), raw)
        return await machine.refusals(count)


async def test_what_the_hub_signed_is_run_so_that_the_refusals_below_mean_something(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    async with fleet.wiretap("cl.v1.nothing") as (link, _):
        await link.publish(messages.calls(laptop.joined.seat), fleet.signer.sealed("call", body_for(laptop)))
        await until(lambda: (laptop.root / "x.txt").exists())


async def test_a_message_of_an_unknown_key_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    laptop = await fleet.add("laptop")
    raw = stranger(tmp_path).sealed("call", body_for(laptop))
    assert await give(fleet, laptop, raw, 1) == ["unknown_key"]
    assert not list(laptop.root.iterdir())


@pytest.mark.parametrize("part", ["kind", "certificate", "body", "signature"])
async def test_an_altered_message_is_refused(fleet: Fleet, tmp_path: Path, part: str) -> None:
    laptop = await fleet.add("laptop")
    ours = msgpack.unpackb(fleet.signer.sealed("call", body_for(laptop)))
    other = msgpack.unpackb(stranger(tmp_path).sealed("call", body_for(laptop, call=WRITE | {"target": "other.txt"})))
    at = {"kind": 1, "certificate": 2, "body": 3, "signature": 4}[part]
    ours[at] = "cancel" if part == "kind" else other[at]
    assert (await give(fleet, laptop, msgpack.packb(ours), 1))[0] in ("forged", "unknown_key")
    assert not list(laptop.root.iterdir())


async def test_a_repeated_message_is_refused_and_done_once(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    async with fleet.wiretap(messages.calls(laptop.joined.seat)) as (_, heard):
        assert (
            await fleet.call(
                "file.write", "x.txt", scope="laptop/app", input={"content": "x"}, options={"append": True}
            )
        )["ok"]
        await until(lambda: heard)
    for count in (1, 2):
        assert await give(fleet, laptop, heard[0].data, count) == ["replayed"] * count
    assert (laptop.root / "x.txt").read_text() == "x"


async def test_a_message_kept_over_a_restart_is_refused(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    raw = fleet.signer.sealed("call", body_for(laptop))
    await fleet.restart(laptop)
    assert await give(fleet, laptop, raw, 1) == ["restarted"]
    assert not list(laptop.root.iterdir())


async def test_a_message_for_another_machine_is_refused(fleet: Fleet) -> None:
    laptop, desk = await fleet.add("laptop"), await fleet.add("desk")
    raw = fleet.signer.sealed("call", body_for(desk))
    assert await give(fleet, laptop, raw, 1) == ["another_machine"]
    assert not list(laptop.root.iterdir()) and not list(desk.root.iterdir())


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"at": 1000.0, "until": 1030.0}, "expired"),
        ({"at": time.time() + 9000, "until": time.time() + 9030}, "clock"),
        ({"until": time.time() + 90_000}, "clock"),
        ({"nonce": "short"}, "malformed"),
        ({"callId": "a.b>*" + "0" * 20}, "malformed"),
        ({"call": "file.write"}, "malformed"),
        ({"more": 1}, "malformed"),
        ({"at": float("nan")}, "malformed"),
    ],
)
async def test_a_request_of_another_time_or_shape_is_refused(fleet: Fleet, changed: dict[str, Any], rule: str) -> None:
    laptop = await fleet.add("laptop")
    told = await give(fleet, laptop, fleet.signer.sealed("call", body_for(laptop, **changed)), 1)
    assert told == [rule if rule != "malformed" else "invalid_request"]
    assert not list(laptop.root.iterdir())


@pytest.mark.parametrize(
    "raw", [b"", b"\xc1", b"\x80", b"\x93" * 3000, b'{"op": "file.write"}', msgpack.packb([1, "call", b"", b"", b""])]
)
async def test_what_is_no_message_is_refused(fleet: Fleet, raw: bytes) -> None:
    laptop = await fleet.add("laptop")
    assert (await give(fleet, laptop, raw, 1))[0] in ("invalid_request", "unknown_key")
    assert not list(laptop.root.iterdir())


async def test_an_oversized_message_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async with Fleet.open(tmp_path, max_payload=16 << 20, max_pending=64 << 20) as fleet:
        laptop = await fleet.add("laptop")
        raw = fleet.signer.sealed("call", body_for(laptop, call=WRITE | {"input": {"content": "x" * MAX_REQUEST}}))
        assert await give(fleet, laptop, raw, 1) == ["invalid_request"]
        assert not list(laptop.root.iterdir())


async def test_a_forged_answer_is_not_believed(fleet: Fleet, tmp_path: Path) -> None:
    laptop = await fleet.add("laptop")
    (laptop.root / "a.txt").write_text("the truth")
    liar = stranger(tmp_path)
    async with fleet.wiretap(messages.calls(laptop.joined.seat)) as (link, heard):
        lie = json.dumps({"ok": True, "data": {"content": "a lie"}}).encode()

        async def forge(message: Any) -> None:
            asked = msgpack.unpackb(msgpack.unpackb(message.data)[3])
            answer = {
                "to": fleet.signer.fingerprint,
                "key": asked["key"],
                "nonce": asked["nonce"],
                "epoch": asked["epoch"],
                "envelope": lie,
            }
            for raw in (liar.sealed("answer", answer), fleet.signer.sealed("answer", answer), b"", b"\x00" * 8):
                await link.publish(message.reply, b"\0\0\0\0\0\0\0\1" + raw)

        assert link._client is not None
        await link._client.subscribe(messages.calls(laptop.joined.seat), cb=forge)
        await link.flush()
        read = await fleet.call("file.read", "a.txt", scope="laptop/app")
        assert read["data"]["content"] == "the truth"
        await until(lambda: heard)


async def test_presence_cannot_be_forged_or_repeated(fleet: Fleet, tmp_path: Path) -> None:
    laptop = await fleet.add("laptop")
    here = laptop.member._presence("stays")
    liar = stranger(tmp_path)
    async with fleet.wiretap(messages.presence(laptop.joined.seat)) as (link, heard):
        await until(lambda: heard)
        await laptop.member.aclose()
        await until(lambda: fleet.state("laptop-id") == "offline")
        renamed = here.model_copy(update={"name": "innocent", "number": 10_000, "at": time.time()}).model_dump(
            by_alias=True
        )
        for raw in (heard[0].data, liar.sealed("here", renamed), fleet.signer.sealed("here", renamed), b"\xc1"):
            await link.publish(messages.presence(laptop.joined.seat), raw)
        await link.flush()

        # Of the two that are signed by other keys, each calls itself a machine that another key is trusted for.
        assert sorted(await refusals(fleet.hub_road, 4)) == [
            "another_machine",
            "another_machine",
            "invalid_request",
            "replayed",
        ]
    assert fleet.state("laptop-id") == "offline"
    assert {item["name"] for item in fleet.hub.machines.listing()} == {"laptop"}


async def test_a_trusted_machine_cannot_call_itself_another(fleet: Fleet) -> None:
    laptop, desk = await fleet.add("laptop"), await fleet.add("desk")
    here = laptop.member._presence("stays").model_copy(update={"machine_id": "desk-id", "number": 10_000})
    async with fleet.wiretap("cl.v1.nothing") as (link, _):
        await link.publish(
            messages.presence(laptop.joined.seat), laptop.member._signer.sealed("here", here.model_dump(by_alias=True))
        )
        await link.flush()
    assert (await fleet.call("file.write", "x.txt", scope="desk-id/app", input={"content": "x"}))["ok"]
    assert (desk.root / "x.txt").exists() and not list(laptop.root.iterdir())


async def test_a_machine_that_allows_no_hub_does_nothing(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    await laptop.member.aclose()
    alone = laptop.joined.model_copy(update={"hubs": []})
    laptop.member = Member(laptop.road.app.services, laptop.road.app.dispatcher, laptop.member._signer, alone)
    laptop.member.start()
    assert await laptop.member.link.wait_up(10)
    assert await give(fleet, laptop, fleet.signer.sealed("call", body_for(laptop)), 1) == ["unknown_key"]
    assert not list(laptop.root.iterdir())


class Liar(Member):
    """A machine of another make, that answers calls with whatever it likes."""

    envelope = b""
    attachments: Any = ()

    def _run(self, request: CallBody, hub: AllowedHub) -> None:
        body = self._to(request, hub) | {"envelope": self.envelope, "attachments": self.attachments}
        self._spawn(self._send_answer(request, hub, body))


@pytest.mark.parametrize(
    ("envelope", "attachments"),
    [
        (b"", []), (b"{}", []), (b"[" * 100_000, []), (b"\xff", []), (b'{"ok": 1}', []), (b'{"ok": true}', []),
        (b'{"ok": false, "operationId": "x", "error": "no"}', []), (b'{"ok": true, "operationId": "x", "effect": "great"}', []),
        (b'{"ok": true, "operationId": "x", "data": {}}', [[1]]), (b'{"ok": true, "operationId": "x", "data": {}}', [["a", "b"]]),
    ],
)  # fmt: skip
async def test_a_machine_that_answers_nonsense_harms_nobody_else(
    fleet: Fleet, envelope: bytes, attachments: Any
) -> None:
    honest, liar = await fleet.add("honest"), await fleet.add("liar")
    await fleet.restart(liar, Liar)
    assert isinstance(liar.member, Liar)
    liar.member.envelope, liar.member.attachments = envelope, attachments
    told = await fleet.call("file.write", "x.txt", scope="[all within=10]/app", input={"content": "x"})
    assert (told["data"]["matched"], told["effect"]) == (2, "unverifiable")
    assert (honest.root / "x.txt").read_text() == "x"
    alone = await fleet.call("file.read", "x.txt", scope="liar/app")
    assert alone["error"]["code"] == "execution_failed"


async def test_what_a_machine_says_of_itself_changes_nothing_else(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    here = laptop.member._presence("stays").model_dump(by_alias=True) | {"number": 10_000}
    hub = fleet.signer.fingerprint
    lies: list[dict[str, Any]] = [
        {"facts": {"os": "linux", "state": "online"}}, {"facts": {"os": "a b"}}, {"facts": {"has": ["x"] * 201}}, {"name": "a/b"}, {"name": ""},
        {"name": "[all]"}, {"machineId": "a/b"}, {"seat": "../x"}, {"scopes": {hub: [{"id": "a\nb", "type": "folder", "capabilities": []}]}}, {"extra": 1},
    ]  # fmt: skip
    async with fleet.wiretap("cl.v1.nothing") as (link, _):
        for lie in lies:
            await link.publish(messages.presence(laptop.joined.seat), laptop.member._signer.sealed("here", here | lie))
        told = await refusals(fleet.hub_road, len(lies))
    assert set(told) <= {"invalid_request", "another_machine"}
    (listed,) = fleet.hub.machines.listing()
    assert (listed["name"], listed["machineId"], listed["state"]) == ("laptop", "laptop-id", "online")
