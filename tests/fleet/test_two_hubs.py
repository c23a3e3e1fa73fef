"""Two hubs of one machine: each gets the whole of its own history once, and nothing that only the other may see."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.errors import PermissionDenied
from computer_linker.fleet.feed import Visible, cursor_file
from computer_linker.fleet.membership import forget_files
from computer_linker.fleet.settings import ServerAddress
from support.fleet import Fleet, Machine, until
from support.nats import NatsServer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet.open(tmp_path) as made:
        yield made


async def work(machine: Machine, *names: str) -> list[str]:
    return [(await machine.road.call("file.write", name, input={"content": name}))["operationId"] for name in names]


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["operationId"] for event in events]


async def verified(hub: Fleet) -> dict[str, Any]:
    told: dict[str, Any] = await hub.history.answer("laptop", view="verify", limit=1, terms=None, cursor=None)
    return told


async def test_each_hub_gets_the_whole_history_once(fleet: Fleet) -> None:
    second = await fleet.beside("second")
    laptop = await fleet.add("laptop")
    await second.share(laptop, "app")
    done = await work(laptop, "a", "b")
    for hub in (fleet, second):
        assert ids(await hub.told("laptop", 2)) == done
    # What the one lost is asked for by it alone, and the other sees no doubles.
    second.hub_road.home.joinpath("fleet-history.db").unlink()
    for name in second.hub_road.home.glob("fleet-history.db-*"):
        name.unlink()
    done += await work(laptop, "c")
    for hub in (second, fleet):
        assert ids(await hub.told("laptop", 3)) == done
        told = await verified(hub)
        assert (told["valid"], told["machines"][0]["problems"]) == (True, [])


async def test_a_hub_does_not_see_what_only_another_may_see(fleet: Fleet) -> None:
    guest = await fleet.beside("guest")
    laptop = await fleet.add("laptop")
    await guest.share(laptop, "app:fs:read")
    done = await work(laptop, "private")
    read = await guest.call("file.read", "private", scope="laptop/app")
    seen = await fleet.call("file.read", "private", scope="laptop/app")
    assert read["ok"] and seen["ok"], (read, seen)
    assert ids(await fleet.told("laptop", 3)) == [*done, read["operationId"], seen["operationId"]]
    key = laptop.member._signer.fingerprint
    await until(lambda: guest.history._archive.last(key) >= fleet.history._archive.last(key) > 0)
    assert ids(await guest.told("laptop", 1)) == [read["operationId"]]
    with guest.history._archive.reading() as database:
        kept = b"".join(frame for (frame,) in database.execute("SELECT frame FROM frames"))
    assert seen["operationId"].encode() not in kept and done[0].encode() not in kept
    assert (await verified(guest))["valid"] and (await verified(fleet))["valid"]


async def test_a_batch_for_one_hub_is_refused_by_another(fleet: Fleet) -> None:
    second = await fleet.beside("second")
    laptop = await fleet.add("laptop")
    await second.share(laptop, "app")
    await work(laptop, "a")
    await fleet.told("laptop", 1)
    feed, visible = laptop.feed, Visible(frozenset({"app"}), "")
    head = feed._store.journal.head
    for_first, _ = feed._batch(feed._before(1, visible), (head.segment, head.offset), visible)
    sealed = laptop.member._signer.sealed("history", for_first.model_dump(by_alias=True))
    with pytest.raises(PermissionDenied):
        second.history._archive.take(laptop.member._signer.fingerprint, sealed)


async def test_a_hub_that_is_away_keeps_no_other_from_its_history(fleet: Fleet) -> None:
    second = await fleet.beside("second")
    laptop = await fleet.add("laptop")
    await second.share(laptop, "app")
    await second.history.aclose()
    done = await work(laptop, "a")
    assert ids(await fleet.told("laptop", 1)) == done
    done += await work(laptop, "b")
    assert ids(await fleet.told("laptop", 2)) == done
    second.history.start()
    assert ids(await second.told("laptop", 2)) == done


async def test_a_hub_on_another_server_is_told_what_happens_from_then_on(fleet: Fleet, tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "other").start()
    try:
        other = await fleet.beside("other", server)
        laptop = await fleet.add("laptop")
        first = await work(laptop, "a")
        assert ids(await fleet.told("laptop", 1)) == first
        await laptop.member.aclose(leaving=True)
        forget_files(laptop.road.home)
        await work(laptop, "nobody's business")
        laptop.joined = laptop.joined.model_copy(update={"place": ServerAddress(url=server.url), "hubs": []})
        await other.share(laptop, "app")
        elsewhere = await work(laptop, "b")
        assert ids(await other.told("laptop", 1)) == elsewhere
        # And back: what it did meanwhile is not told, and the hub says that something is missing.
        laptop.joined = laptop.joined.model_copy(update={"place": ServerAddress(url=fleet.server.url), "hubs": []})
        await fleet.share(laptop, "app")
        again = await work(laptop, "c")
        assert ids(await fleet.told("laptop", 2)) == first + again
        told = await verified(fleet)
        assert told["valid"] and [p["problem"] for p in told["machines"][0]["problems"]] == [
            "the machine allowed this hub anew; what it did before then is not told"
        ]
        await other.history.aclose()
        await other.hub.aclose()
    finally:
        server.kill()


async def test_a_hub_that_is_allowed_again_is_not_told_what_came_between(fleet: Fleet) -> None:
    second = await fleet.beside("second")
    laptop = await fleet.add("laptop")
    await second.share(laptop, "app")
    first = await work(laptop, "a")
    assert ids(await second.told("laptop", 1)) == first
    laptop.joined = laptop.joined.model_copy(update={"hubs": laptop.joined.hubs[:1]})
    await fleet.restart(laptop)
    assert not (laptop.road.home / cursor_file(second.signer.fingerprint)).exists()
    await work(laptop, "private")
    laptop.joined = laptop.joined.model_copy(update={"hubs": [*laptop.joined.hubs]})
    second.hub.machines.forget("laptop")
    await second.share(laptop, "app")
    again = await work(laptop, "b")
    assert ids(await second.told("laptop", 2)) == first + again
