"""Machines of a fleet are used by name, by id and by what they are; each decides for itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.fleet import Fleet, until

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
    who = f"fleet:hub-{fleet.signer.fingerprint[:6]}"
    assert {event["principal"] for event in events if event["op"].startswith("file.")} == {who}


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
    fleet.hub.machines.trust(stranger.joined.seat[:12])
    (stranger.root / "a.txt").write_text("x")
    await until(lambda: fleet.state("stranger-id") == "online")
    assert (await fleet.call("file.read", "a.txt", scope="stranger/app"))["ok"]


async def test_presence_tells_who_is_there_who_went_and_who_left(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    await laptop.restart()
    await until(lambda: fleet.state("laptop-id") == "online")
    await laptop.member.aclose()
    await until(lambda: fleet.state("laptop-id") == "offline")
    refused = await fleet.call("file.list", ".", scope="laptop/app")
    assert (refused["error"]["code"], refused["error"]["details"]["state"]) == ("provider_unavailable", "offline")
    await laptop.restart()
    await until(lambda: fleet.state("laptop-id") == "online")
    await laptop.member.aclose(leaving=True)
    await until(lambda: fleet.state("laptop-id") == "left")
    assert (await fleet.call("file.list", ".", scope="[all]/app"))["error"]["code"] == "not_found"
