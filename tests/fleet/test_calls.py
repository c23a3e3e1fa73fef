"""Machines of a fleet are used by name, by id and by what they are; each decides for itself."""

import re
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import Approvals
from computer_linker.audit.history import every_event
from computer_linker.audit.query import Filter
from computer_linker.audit.store import AuditStore
from computer_linker.errors import LimitExceeded, NotFound
from computer_linker.fleet.machines import Machines
from computer_linker.fleet.settings import AllowedHub, FleetFile
from computer_linker.model.principal import account_of
from support.fleet import Fleet, until
from support.road import LOCAL
from support.sleepers import running

pytestmark = pytest.mark.anyio


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet.open(tmp_path) as made:
        yield made


async def test_a_machine_is_used_by_name_and_by_id(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    (laptop.root / "a.txt").write_text("on the laptop")
    for address in ("laptop", "laptop-id"):
        envelope = await fleet.call("file.read", "a.txt", scope=f"{address}/app")
        assert (envelope["ok"], envelope["data"]["content"], envelope["scope"]) == (
            True,
            "on the laptop",
            f"{address}/app",
        )
    written = await fleet.call("file.write", "b.txt", scope="laptop/app", input={"content": "from afar"})
    assert (written["ok"], written["effect"]) == (True, "confirmed")
    assert (laptop.root / "b.txt").read_text() == "from afar"
    events = (await laptop.road.data("history.timeline"))["events"]
    who = "fleet:hub-" + ":".join(re.findall("....", fleet.signer.fingerprint[:20]))
    assert {account_of(event["principal"]) for event in events if event["op"].startswith("file.")} == {who}


async def test_what_a_hub_left_running_ends_when_the_machine_parts_from_it(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    for number in ("7304", "7305"):
        started = await fleet.call(
            "command.start", ".", scope="laptop/app", input={"command": ["sleep", f"60.{number}"]}
        )
        assert started["ok"], started
    await laptop.member.part_from([fleet.signer.fingerprint])
    assert running("7304") and running("7305")
    await laptop.member.part_from()
    assert not running("7304") and not running("7305")
    store = laptop.road.app.services.use(AuditStore)

    def told() -> list[Any]:
        store.index.catch_up()
        return [event["summary"] for event in every_event(store, Filter()) if event["op"] == "principal.end"]

    assert await until(told) == [{"ended": 2}]


async def test_a_name_two_machines_have_is_refused_with_both_ids(fleet: Fleet) -> None:
    one = await fleet.add("twin", machine_id="one")
    two = await fleet.add("twin", machine_id="two")
    refused = await fleet.call("file.write", "x.txt", scope="twin/app", input={"content": "x"})
    assert refused["error"]["code"] == "invalid_request"
    assert refused["error"]["details"]["machineIds"] == ["one", "two"]
    assert not list(one.root.iterdir()) and not list(two.root.iterdir())
    assert (await fleet.call("file.write", "x.txt", scope="two/app", input={"content": "x"}))["ok"]
    assert not list(one.root.iterdir()) and (two.root / "x.txt").exists()


async def test_the_policy_of_each_machine_holds(fleet: Fleet) -> None:
    reader = await fleet.add("reader", "app:fs:read")
    (reader.root / "a.txt").write_text("x")
    await fleet.add("writer", "app")
    closed = await fleet.add("closed", "nothing")
    written = await fleet.call("file.write", "b.txt", scope="[all]/app", input={"content": "x"})
    codes = {
        item["machine"]: item["envelope"].get("effect") or item["envelope"]["error"]["code"]
        for item in written["data"]["results"]
    }
    assert codes == {"reader": "permission_denied", "writer": "confirmed", "closed": "unknown_scope"}
    assert (written["effect"], written["data"]["failed"]) == ("partial", 2)
    assert [path.name for path in reader.root.iterdir()] == ["a.txt"] and not list(closed.root.iterdir())


async def test_a_machine_nobody_trusted_cannot_be_named(fleet: Fleet) -> None:
    stranger = await fleet.add("stranger", trust=False)
    assert fleet.state("stranger-id") == "pending"
    for address in ("stranger", "stranger-id", "[name=stranger]"):
        refused = await fleet.call("file.read", "a.txt", scope=f"{address}/app")
        assert refused["error"]["code"] in ("unknown_scope", "not_found")
    for short in ("", stranger.joined.seat[:19], "f" * 20):
        with pytest.raises(NotFound):
            fleet.hub.machines.trust(short)
    fleet.hub.machines.trust(stranger.joined.seat[:20].upper())
    (stranger.root / "a.txt").write_text("x")
    await until(lambda: fleet.state("stranger-id") == "online")
    assert (await fleet.call("file.read", "a.txt", scope="stranger/app"))["ok"]


async def test_presence_tells_who_is_there_who_went_and_who_left(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    await fleet.restart(laptop)
    assert fleet.state("laptop-id") == "online"
    await laptop.member.aclose()
    await until(lambda: fleet.state("laptop-id") == "offline")
    refused = await fleet.call("file.list", ".", scope="laptop/app")
    assert (refused["error"]["code"], refused["error"]["details"]["state"]) == ("provider_unavailable", "offline")
    (listed,) = fleet.hub.machines.listing()
    assert refused["error"]["details"]["lastSeenAt"] == listed["lastSeenAt"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", listed["lastSeenAt"])
    await fleet.restart(laptop)
    assert fleet.state("laptop-id") == "online"
    await laptop.member.aclose(leaving=True)
    await until(lambda: fleet.state("laptop-id") == "left")
    assert (await fleet.call("file.list", ".", scope="[all]/app"))["error"]["code"] == "not_found"


async def test_a_machine_that_asks_its_person_is_used_only_when_they_say_yes(fleet: Fleet) -> None:
    careful = await fleet.add("careful", policy={"confirm": "all"})
    write = {"op": "file.write", "target": "x.txt", "input": {"content": "x"}}
    refused = await fleet.call("file.write", "x.txt", scope="careful/app", input={"content": "x"})
    assert refused["error"]["code"] == "confirm_required"
    issued = await fleet.call("confirm.issue", scope="careful/app", input=write)
    token = {"token": issued["data"]["token"]}
    again = await fleet.call("file.write", "x.txt", scope="careful/app", input={"content": "x"}, confirm=token)
    assert again["error"]["code"] == "confirm_required"
    assert not list(careful.root.iterdir())
    # The person at that machine answers; nobody at the hub could.
    assert careful.road.app.services.use(Approvals).answer(issued["data"]["approvalId"], "yes") is not None
    done = await fleet.call("file.write", "x.txt", scope="careful/app", input={"content": "x"}, confirm=token)
    assert (done["ok"], (careful.root / "x.txt").read_text()) == (True, "x")
    spent = await fleet.call("file.write", "x.txt", scope="careful/app", input={"content": "y"}, confirm=token)
    assert (spent["error"]["code"], (careful.root / "x.txt").read_text()) == ("confirm_required", "x")


async def test_a_machine_of_the_fleet_cannot_be_used_to_reach_another(fleet: Fleet) -> None:
    laptop, desk = await fleet.add("laptop"), await fleet.add("desk")
    refused = await fleet.call("file.write", "x.txt", scope="laptop/desk/app", input={"content": "x"})
    assert refused["error"]["code"] == "unknown_scope"
    assert not list(laptop.root.iterdir()) and not list(desk.root.iterdir())


async def test_who_was_given_only_some_scopes_of_the_hub_reaches_no_machine(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    guest = replace(LOCAL, grants=frozenset({"app", "laptop/app"}))
    for scope in ("laptop/app", "[all]/app"):
        refused = await fleet.call("file.write", "x.txt", scope=scope, input={"content": "x"}, principal=guest)
        assert refused["error"]["code"] == "unknown_scope"
    assert not list(laptop.root.iterdir())


async def test_a_query_that_fits_nobody_or_is_none_is_refused(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    for address, code in (("[os=plan9]", "not_found"), ("[os=linux", "invalid_request"), ("[]", "invalid_request")):
        refused = await fleet.call("file.write", "x.txt", scope=f"{address}/app", input={"content": "x"})
        assert refused["error"]["code"] == code
    assert not list(laptop.root.iterdir())
    matching = await fleet.call("file.write", "x.txt", scope="[os=linux can=fs:write]/app", input={"content": "x"})
    assert (matching["data"]["matched"], matching["effect"]) == (1, "confirmed")


async def test_a_hub_that_starts_again_knows_its_machines(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    kept = FleetFile(fleet.hub_road.home).read().hub
    assert kept is not None
    again = Machines(kept, fleet.signer.fingerprint, lambda _: None)
    (machine,) = again.by_key.values()
    assert (machine.trusted, machine.known.name, again.state(machine)) == (True, "laptop", "stale")
    assert machine.known.fingerprint == laptop.member._signer.fingerprint


async def test_the_history_keeps_a_query_and_nothing_that_only_looks_like_one(fleet: Fleet) -> None:
    await fleet.add("laptop")
    secret = "sk-live-4f9aK2mQ7xT0bW8yR3pL6vN1"
    scopes = [
        "[all within=5]/app",
        "[os=linux can=fs:read]/app",
        f"[{secret}]/app",
        f"[name={secret}]/app",
        "[a\x1b[31m]/app",
        "[9 x]/app",
    ]
    for scope in scopes:
        await fleet.call("file.list", ".", scope=scope)
    store = fleet.hub_road.app.services.use(AuditStore)

    def told() -> list[str]:
        store.index.catch_up()
        return [event["scope"] for event in every_event(store, Filter()) if event["op"] == "file.list"]

    await until(lambda: len(told()) == len(scopes))
    assert told()[:2] == scopes[:2]
    assert not any(secret in scope or "\x1b" in scope for scope in told())


async def test_a_hub_that_floods_a_machine_uses_up_nothing_of_another(fleet: Fleet) -> None:
    flooding = AllowedHub(fingerprint="f" * 64, name="flooding", grants=["app"])
    laptop = await fleet.add("laptop", also=(flooding,))
    ledger = laptop.member._ledgers[flooding.fingerprint]
    with pytest.raises(LimitExceeded):
        for number in range(1_000_000):
            ledger.spend(str(number), time.time() + 600)
    assert (await fleet.call("file.list", ".", scope="laptop/app"))["ok"]
