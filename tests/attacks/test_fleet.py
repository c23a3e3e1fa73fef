"""A fleet in which a hub, a machine or the server in the middle turned: none of them gets at what another was given."""

import json
import secrets
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.fleet import messages
from computer_linker.fleet.member import Member
from computer_linker.fleet.messages import Parts
from computer_linker.fleet.seal import Signer, opened
from computer_linker.fleet.settings import AllowedHub
from computer_linker.transports.peer.identity import own_identity
from support.fleet import BEAT, Fleet, Machine, until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet.open(tmp_path) as made:
        yield made


def _second_hub(tmp_path: Path) -> Signer:
    home = tmp_path / "second"
    home.mkdir(mode=0o700)
    return Signer(own_identity(home, "second-id"))


async def _also_of(fleet: Fleet, machine: Machine, hub: Signer, *grants: str) -> None:
    """Start the machine anew, with a second hub that may use a little of it."""
    await machine.member.aclose()
    second = AllowedHub(fingerprint=hub.fingerprint, name="second", grants=list(grants))
    machine.joined = machine.joined.model_copy(update={"hubs": [*machine.joined.hubs, second]})
    services, dispatcher = machine.road.app.services, machine.road.app.dispatcher
    machine.member = Member(services, dispatcher, machine.member._signer, machine.joined, BEAT)
    machine.member.start()
    known = fleet.hub.machines.by_key[machine.member._signer.fingerprint]
    await until(lambda: known.presence is not None and known.presence.epoch == machine.member._epoch)


def _body(machine: Machine, key: str, **more: Any) -> dict[str, Any]:
    now = time.time()
    return {
        "to": machine.member._signer.fingerprint, "epoch": machine.member._epoch, "nonce": secrets.token_hex(16),
        "key": key, "at": now, "until": now + 60, **more,
    }  # fmt: skip


async def test_a_hub_gets_no_answer_that_another_hub_asked_for(fleet: Fleet, tmp_path: Path) -> None:
    """The server sees the key of every act, and may tell it to a hub it is friends with."""
    laptop, second = await fleet.add("laptop"), _second_hub(tmp_path)
    (laptop.root / "a.txt").write_text("for the first hub")
    await _also_of(fleet, laptop, second, "app:history:read", "app:history:all")
    read = {"scope": "app", "op": "file.read", "target": "a.txt"}
    key = secrets.token_hex(16)
    where = messages.every_reply(messages.seat_of(second.fingerprint))
    async with fleet.wiretap(where) as (link, heard):
        first = fleet.signer.sealed("call", _body(laptop, key, callId=secrets.token_hex(16), call=read))
        await link.publish(messages.calls(laptop.joined.seat), first)
        thief = second.sealed("call", _body(laptop, key, callId=secrets.token_hex(16), call=read))
        await link.publish(messages.calls(laptop.joined.seat), thief)
        await until(lambda: heard)
    whole = Parts().add(heard[0].data)
    assert whole is not None
    envelope = json.loads(opened(whole, lambda _: True).body["envelope"])
    assert envelope["error"]["code"] == "permission_denied"
    assert b"for the first hub" not in heard[0].data


async def test_a_hub_cannot_end_what_another_hub_began(fleet: Fleet, tmp_path: Path) -> None:
    laptop, second = await fleet.add("laptop"), _second_hub(tmp_path)
    await _also_of(fleet, laptop, second, "app:history:read", "app:history:all")
    script = "import os,time;open('begun','w').close()\nwhile not os.path.exists('go'):time.sleep(.02)\nopen('done','w').close()"
    run = {"scope": "app", "op": "command.run", "target": ".", "input": {"command": [sys.executable, "-c", script]}}
    key = secrets.token_hex(16)
    async with fleet.wiretap(messages.every_reply(messages.seat_of(second.fingerprint))) as (link, heard):
        call = fleet.signer.sealed("call", _body(laptop, key, callId=secrets.token_hex(16), call=run))
        await link.publish(messages.calls(laptop.joined.seat), call)
        await until((laptop.root / "begun").exists)
        await link.publish(messages.calls(laptop.joined.seat), second.sealed("cancel", _body(laptop, key)))
        # An answer to a call sent after it shows that the cancel was taken in.
        look = {"scope": "app", "op": "file.stat", "target": "begun"}
        after = second.sealed("call", _body(laptop, secrets.token_hex(16), callId=secrets.token_hex(16), call=look))
        await link.publish(messages.calls(laptop.joined.seat), after)
        await until(lambda: heard)
        (laptop.root / "go").touch()
        await until((laptop.root / "done").exists)


async def test_hubs_of_one_name_and_a_like_key_are_told_apart(fleet: Fleet) -> None:
    """Keys with the same first digits are found in minutes; what a hub began must not be theirs."""
    laptop = await fleet.add("laptop")
    hub = laptop.joined.hubs[0]
    alike = hub.model_copy(update={"fingerprint": hub.fingerprint[:8] + "0" * 56})
    assert laptop.member._principal(hub).id != laptop.member._principal(alike).id


async def test_a_machine_whose_id_is_anothers_name_does_not_get_its_calls(fleet: Fleet) -> None:
    laptop, evil = await fleet.add("laptop"), await fleet.add("evil", machine_id="laptop")
    told = await fleet.call("file.write", "x.txt", scope="laptop/app", input={"content": "for the laptop"})
    assert told["error"]["code"] == "invalid_request"
    assert not list(evil.root.iterdir()) and not list(laptop.root.iterdir())
    assert (await fleet.call("file.write", "x.txt", scope="laptop-id/app", input={"content": "x"}))["ok"]
    assert (laptop.root / "x.txt").exists() and not list(evil.root.iterdir())
