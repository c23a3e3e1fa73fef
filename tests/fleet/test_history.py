"""One history covers all machines, outlives their absence, has no holes and no doubles, and shows what was tampered with."""

import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from computer_linker.approvals.approvals import PERSON, Answerer, Approvals
from computer_linker.errors import InvalidRequest
from computer_linker.fleet.archive import Archive
from computer_linker.fleet.feed import Visible, cursor_file
from support.fleet import Fleet, Machine, until
from support.waiting import until_awaited

pytestmark = pytest.mark.anyio


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet.open(tmp_path) as made:
        yield made


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["operationId"] for event in events]


async def work(machine: Machine, *names: str) -> list[str]:
    return [(await machine.road.call("file.write", name, input={"content": name}))["operationId"] for name in names]


async def test_one_history_covers_all_machines_and_outlives_their_absence(fleet: Fleet) -> None:
    laptop, desk = await fleet.add("laptop"), await fleet.add("desk")
    done = [*await work(laptop, "a"), *await work(desk, "b"), *await work(laptop, "c")]
    await fleet.call("file.read", "a", scope="laptop/app")
    events = await fleet.told("[all]", 4)
    assert ids(events)[:3] == done
    assert [(event["machine"], event["op"], event["outcome"], event["scope"]) for event in events] == [
        ("laptop", "file.write", "done", "laptop/app"),
        ("desk", "file.write", "done", "desk/app"),
        ("laptop", "file.write", "done", "laptop/app"),
        ("laptop", "file.read", "done", "laptop/app"),
    ]
    await laptop.member.aclose()
    await until(lambda: fleet.state("laptop-id") == "offline")
    assert ids(await fleet.told("laptop", 3)) == [done[0], done[2], events[3]["operationId"]]
    assert ids(await fleet.told("[all]", 4, "last")) == ids(events)[::-1]
    assert ids(await fleet.told("[all]", 1, terms="op:file.read")) == ids(events)[3:]
    assert ids(await fleet.told("[all]/app", 1, terms="read")) == ids(events)[3:]
    assert await fleet.told("[all]/other", 0) == []


async def test_who_approved_a_call_on_a_machine_can_be_asked_for(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop", policy={"confirm": "all"})
    refused = await laptop.road.call("file.write", "a", input={"content": "a"})
    people, by = laptop.road.app.services.use(Approvals), Answerer(PERSON, "notification")
    assert await people.take(refused["error"]["details"]["approvalId"], "yes", by) is not None
    (approved,) = await work(laptop, "a")
    (event,) = await fleet.told("laptop", 1, terms="approved:notification")
    assert (event["operationId"], event["approval"]["by"]) == (approved, "person")
    assert ids(await fleet.told("laptop", 1, terms="approved-by:person")) == [approved]
    assert await fleet.told("laptop", 0, terms="approved:page") == []


async def test_what_happened_while_the_machine_was_offline_comes_later_once(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    before = await work(laptop, "a")
    await fleet.told("laptop", 1)
    fleet.server.kill()
    alone = await work(laptop, "b", "c")
    fleet.server.start()
    assert ids(await fleet.told("laptop", 3)) == before + alone
    await laptop.member.aclose()
    alone += await work(laptop, "d")
    await laptop.restart()
    assert ids(await fleet.told("laptop", 4)) == before + alone
    # As after a crash between the server's answer and the keeping of the cursor: everything is sent once more.
    await laptop.member.aclose()
    begin = {"segment": 1, "offset": 0, "number": 0, "seal": "0" * 32, "unfinished": [], "floor": 0}
    began = {"url": fleet.server.url, "seat": laptop.joined.seat, **begin}
    (laptop.road.home / cursor_file(fleet.signer.fingerprint)).write_text(json.dumps(began))
    await laptop.restart()
    last = await work(laptop, "e")
    assert ids(await fleet.told("laptop", 5)) == before + alone + last
    told = await fleet.history.answer("laptop", view="verify", limit=1, terms=None, cursor=None)
    assert (told["valid"], told["machines"][0]["problems"]) == (True, [])


async def test_the_history_goes_on_by_cursor_without_holes_or_doubles(fleet: Fleet) -> None:
    laptop, desk = await fleet.add("laptop"), await fleet.add("desk")
    done = [(await work(machine, str(number)))[0] for number in range(3) for machine in (laptop, desk)]
    await fleet.told("[all]", 6)
    seen: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(3):
        page = await fleet.history.answer("[all]", view="last", limit=2, terms=None, cursor=cursor)
        seen, cursor = [*seen, *page["events"]], page["nextCursor"]
    # Computers that began something in the same millisecond have no order among themselves.
    assert (sorted(ids(seen)), cursor) == (sorted(done), None)
    assert [one["startedAt"] for one in seen] == sorted((one["startedAt"] for one in seen), reverse=True)
    for wrong in ("e1", "f", "f999999", "f-1"):
        with pytest.raises(InvalidRequest):
            await fleet.history.answer("[all]", view="last", limit=2, terms=None, cursor=wrong)
    with pytest.raises(InvalidRequest):
        await fleet.history.answer("[all]", view="sessions", limit=2, terms=None, cursor=None)


async def test_a_hub_sees_only_what_it_may_see(fleet: Fleet) -> None:
    reader = await fleet.add("reader", "app:fs:read")
    await work(reader, "private")
    assert (await fleet.call("file.read", "private", scope="reader/app"))["ok"]
    (event,) = await fleet.told("reader", 1)
    assert (event["op"], event["target"]) == ("file.read", "private")
    await work(reader, "private-too")
    await until(lambda: fleet.history._archive.last(reader.member._signer.fingerprint) >= 6)
    assert len(await fleet.told("reader", 1)) == 1
    with fleet.history._archive.reading() as database:
        kept = b"".join(frame for (frame,) in database.execute("SELECT frame FROM frames"))
    assert b"private-too" not in kept
    assert (await fleet.history.answer("reader", view="verify", limit=1, terms=None, cursor=None))["valid"]


@pytest.mark.parametrize(
    ("tamper", "problem"),
    [
        ("UPDATE frames SET frame = replace(frame, 'file.write', 'file.nothx') WHERE first = 1", "signature"),
        ("DELETE FROM frames WHERE rowid = (SELECT MIN(rowid) + 1 FROM frames)", "missing"),
        ("DELETE FROM frames WHERE rowid = (SELECT MAX(rowid) FROM frames)", "newest"),
        ("UPDATE events SET opening = replace(opening, 'file.write', 'file.read') WHERE n < 4", "index"),
        ("UPDATE events SET closing = NULL", "outcome"),
        ("INSERT INTO events SELECT number + 9, machine, n + 1, id, at, scope, op, ok, code, client, session, connection, principal, opening, closing, text FROM events WHERE n = (SELECT MIN(n) FROM events)", "index"),
    ],
)  # fmt: skip
async def test_a_hub_that_changes_the_history_is_found_out(fleet: Fleet, tamper: str, problem: str) -> None:
    laptop = await fleet.add("laptop")
    for name in "abc":
        await work(laptop, name)
        await fleet.told("laptop", "abc".index(name) + 1)

    async def is_whole() -> bool:
        verified = await fleet.history.answer("laptop", view="verify", limit=1, terms=None, cursor=None)
        assert verified["valid"]
        return bool(verified["machines"][0]["missing"] == 0)

    await until_awaited(is_whole)
    with sqlite3.connect(fleet.hub_road.home / "fleet-history.db") as database:
        changed = database.execute(
            tamper.replace(
                "replace(frame, 'file.write', 'file.nothx')",
                "CAST(replace(CAST(hex(frame) AS TEXT), hex('file.write'), hex('file.nothx')) AS BLOB)",
            )
        )
        assert changed.rowcount > 0
    found = await fleet.history.answer("laptop", view="verify", limit=1, terms=None, cursor=None)
    assert not found["valid"]
    database.close()
    assert problem in found["machines"][0]["problem"] or problem == "signature"


async def test_batches_of_another_key_or_another_story_are_not_stored(fleet: Fleet, tmp_path: Path) -> None:
    laptop, desk = await fleet.add("laptop"), await fleet.add("desk")
    await work(laptop, "a", "b")
    await work(desk, "x")
    await fleet.told("[all]", 3)
    archive, feed = fleet.history._archive, laptop.feed
    signer = laptop.member._signer
    visible = Visible(frozenset({"app"}), "")
    head = feed._store.journal.head
    honest, _ = feed._batch(feed._before(1, visible), (head.segment, head.offset), visible)
    sealed = desk.member._signer.sealed("history", honest.model_dump(by_alias=True))
    with pytest.raises(Exception, match="not known"):
        archive.take(signer.fingerprint, sealed)
    assert archive.take(signer.fingerprint, signer.sealed("history", honest.model_dump(by_alias=True))) == "known"
    other = honest.model_copy(update={"lines": [[b"f" * 32, line] for _, line in honest.lines]})
    assert archive.take(signer.fingerprint, signer.sealed("history", other.model_dump(by_alias=True))) == "changed"
    later = honest.model_copy(update={"first": 500, "after": "more"})
    assert archive.take(signer.fingerprint, signer.sealed("history", later.model_dump(by_alias=True))) == "gap"
    for lines in ([], [[b"f" * 32, b"no json"]], [[b"f" * 32, b'{"kind": "record"}']], [[None, b"{}"]], [[b"x"]]):
        strange = honest.model_copy(
            update={
                "first": archive.last(signer.fingerprint) + 1,
                "lines": lines,
                "previous": _head(archive, signer.fingerprint),
            }
        )
        with pytest.raises(InvalidRequest):
            archive.take(signer.fingerprint, signer.sealed("history", strange.model_dump(by_alias=True)))
    assert len(await fleet.told("laptop", 2)) == 2


def _head(archive: Archive, machine: str) -> bytes:
    with archive.reading() as database:
        seal: bytes = database.execute("SELECT seal FROM heads WHERE machine = ?", (machine,)).fetchone()[0]
        return seal


async def test_batches_the_server_lost_are_sent_again(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    first = await work(laptop, "a")
    await fleet.told("laptop", 1)
    # A server that says it stored a batch and did not.
    feed = laptop.feed
    lost = await work(laptop, "b")
    head = feed._store.journal.head
    _, feed._cursor = feed._batch(feed._cursor, (head.segment, head.offset), Visible(frozenset({"app"}), ""))
    then = await work(laptop, "c")
    assert ids(await fleet.told("laptop", 3)) == first + lost + then


async def test_what_a_server_lost_is_missed_without_anything_new_to_tell(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    feed = laptop.feed
    first = await work(laptop, "a")
    head = feed._store.journal.head
    _, feed._cursor = feed._batch(feed._cursor, (head.segment, head.offset), Visible(frozenset({"app"}), ""))
    assert ids(await fleet.told("laptop", 1)) == first


async def test_what_came_before_joining_is_never_told(fleet: Fleet, tmp_path: Path) -> None:
    laptop = await fleet.add("laptop")
    await work(laptop, "a")
    await laptop.member.aclose()
    (laptop.road.home / cursor_file(fleet.signer.fingerprint)).unlink()
    await laptop.restart()
    before = laptop.feed._cursor.floor
    assert before > 0
    later = await work(laptop, "b")
    laptop.feed.rewind(1)
    await until(lambda: laptop.feed.sent > before)
    laptop.feed.rewind(1)
    again = await work(laptop, "c")
    told = ids(await fleet.told("laptop", 2))
    assert told[-2:] == later + again
