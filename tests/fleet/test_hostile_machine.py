"""A machine of the fleet that lies and floods harms nobody else: not their history, not their calls, not the hub."""

import json
import secrets
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from computer_linker.errors import InvalidRequest, PermissionDenied
from computer_linker.fleet import messages
from computer_linker.fleet.archive import Archive
from computer_linker.fleet.member import Member
from computer_linker.fleet.messages import CallBody, HistoryBody
from computer_linker.fleet.seal import Signer
from computer_linker.fleet.settings import AllowedHub
from computer_linker.transports.peer.identity import own_identity
from support.fleet import Fleet, Machine, refusals, until

pytestmark = pytest.mark.anyio
RECORD = {
    "kind": "record", "operationId": "x", "startedAt": "2026-01-01T00:00:00.000Z", "scope": "app", "op": "file.read", "principal": "p",
    "session": "s", "connection": "c", "ok": True,
}  # fmt: skip


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet.open(tmp_path) as made:
        yield made


async def lying(fleet: Fleet, machine: Machine, *lines: bytes, **changed: Any) -> None:
    """Send these records as this machine's next ones, signed by its key."""
    archive, signer = fleet.history._archive, machine.member._signer
    await fleet.has_all(machine)
    await machine.member.aclose()
    first = archive.last(signer.fingerprint) + 1
    with archive.reading() as database:
        seal = archive._head(database, signer.fingerprint)[1]
    told: list[list[bytes | None]] = [[secrets.token_hex(16).encode(), line] for line in lines]
    body = HistoryBody(to=fleet.signer.fingerprint, first=first, previous=seal, lines=told)
    sealed = signer.sealed("history", body.model_dump(by_alias=True) | changed)
    async with fleet.wiretap("cl.v1.nothing") as (link, _):
        subject = messages.audit(messages.seat_of(fleet.signer.fingerprint), machine.joined.seat)
        await link.jetstream().publish(subject, sealed)


async def work(machine: Machine, *names: str) -> list[str]:
    return [(await machine.road.call("file.write", name, input={"content": name}))["operationId"] for name in names]


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 50_000, b"[]", b"1", b"null", b"\xff", b"{}", json.dumps(RECORD | {"ok": 10**30}).encode(),
        json.dumps(RECORD | {"kind": "outcome", "ok": 10**30}).encode(), json.dumps(RECORD | {"kind": ["record"]}).encode(),
        json.dumps(RECORD | {"operationId": None}).encode(), json.dumps(RECORD | {"startedAt": 1}).encode(),
        json.dumps(RECORD | {"op": {"a": 1}}).encode(), json.dumps(RECORD | {"errorCode": 5}).encode(),
        json.dumps(RECORD | {"target": "\ud800"}).encode(), json.dumps(RECORD | {"target": "x" * 70_000}).encode(),
        json.dumps(RECORD | {"durationMs": float("nan")}).encode(), json.dumps(RECORD | {"kind": "pruned"}).encode(),
    ],
)  # fmt: skip
async def test_a_record_nobody_can_read_stops_nobodys_history(fleet: Fleet, line: bytes) -> None:
    liar, honest = await fleet.add("liar"), await fleet.add("honest")
    await work(liar, "a")
    before = await fleet.has_all(liar)
    await lying(fleet, liar, line)
    assert "invalid_request" in await refusals(fleet.hub_road, 1)
    done = await work(honest, "b")
    events = await fleet.told("[all]", 2, "last")
    assert events[0]["operationId"] == done[0] and len(events) == 2
    assert fleet.history._archive.last(liar.member._signer.fingerprint) == before


@pytest.mark.parametrize("changed", [{"first": 1 << 60}, {"first": -1}, {"lines": []}, {"after": "x"}])
async def test_a_batch_of_impossible_numbers_is_refused(fleet: Fleet, changed: dict[str, Any]) -> None:
    liar = await fleet.add("liar")
    await work(liar, "a")
    await fleet.told("liar", 1)
    await lying(fleet, liar, json.dumps(RECORD).encode(), **changed)
    assert "invalid_request" in await refusals(fleet.hub_road, 1)
    assert len(await fleet.told("liar", 1)) == 1


async def test_records_of_the_future_do_not_hide_what_comes(fleet: Fleet) -> None:
    liar, honest = await fleet.add("liar"), await fleet.add("honest")
    lies = [
        json.dumps(RECORD | {"operationId": str(n), "startedAt": at}).encode() for n, at in enumerate(("9999", "zz"))
    ]
    await work(liar, "a")
    await fleet.told("liar", 1)
    await lying(fleet, liar, *lies)
    assert len(await fleet.told("liar", 3)) == 3
    with fleet.history._archive.reading() as database:
        latest = database.execute("SELECT MAX(at) FROM events").fetchone()[0]
    assert latest < f"{time.gmtime().tm_year + 1}"
    await work(honest, "b")
    assert len(await fleet.told("[all]", 4)) == 4


async def test_history_under_anothers_name_is_not_believed(fleet: Fleet) -> None:
    liar, honest = await fleet.add("liar"), await fleet.add("honest")
    await work(honest, "a")
    await fleet.told("honest", 1)
    body = HistoryBody(
        to=fleet.signer.fingerprint,
        first=1,
        previous=b"",
        lines=[[b"f" * 32, json.dumps(RECORD).encode()]],
        after="joined",
    ).model_dump(by_alias=True)
    forged = msgpack.unpackb(liar.member._signer.sealed("history", body))
    # Its own signature under the other's certificate, from the other's seat.
    forged[2] = msgpack.unpackb(honest.member._signer.sealed("history", body))[2]
    async with fleet.wiretap("cl.v1.nothing") as (link, _):
        subject = messages.audit(messages.seat_of(fleet.signer.fingerprint), honest.joined.seat)
        await link.jetstream().publish(subject, msgpack.packb(forged))
        assert "forged" in await refusals(fleet.hub_road, 1)
    assert len(await fleet.told("honest", 1)) == 1


async def test_second_stories_do_not_fill_the_hubs_disk(fleet: Fleet) -> None:
    liar = await fleet.add("liar")
    await work(liar, "a")
    await fleet.told("liar", 1)
    archive, signer = fleet.history._archive, liar.member._signer
    for number in range(300):
        body = HistoryBody(to=fleet.signer.fingerprint, first=1, previous=b"", lines=[[b"%032d" % number, None]])
        assert archive.take(signer.fingerprint, signer.sealed("history", body.model_dump(by_alias=True))) == "changed"
    with archive.reading() as database:
        assert database.execute("SELECT COUNT(*) FROM problems").fetchone()[0] <= 100


async def test_a_history_without_end_does_not_fill_the_hubs_disk(fleet: Fleet, tmp_path: Path) -> None:
    liar = await fleet.add("liar")
    signer, machine = liar.member._signer, liar.member._signer.fingerprint
    (tmp_path / "small").mkdir(mode=0o700)
    archive = Archive(tmp_path / "small", fleet.signer.fingerprint, max_bytes=200_000)
    seals = [b"%032d" % number for number in range(4001)]
    frames = []
    for first in range(1, 4001, 10):
        lines: list[list[bytes | None]] = [
            [seals[n], json.dumps(RECORD | _half(n), sort_keys=True).encode()] for n in range(first, first + 10)
        ]
        after: Any = "joined" if first == 1 else "more"
        body = HistoryBody(
            to=fleet.signer.fingerprint, first=first, previous=seals[first - 1], lines=lines, after=after
        )
        frames.append(signer.sealed("history", body.model_dump(by_alias=True)))
        assert archive.take(machine, frames[-1]) == "stored"
    verdict = archive.verify(machine)
    assert (verdict.problem, verdict.last) == (None, 4000)
    assert verdict.begins_at is not None and verdict.begins_at > 3000
    with archive.reading() as database:
        assert database.execute("SELECT SUM(length(frame)) FROM frames").fetchone()[0] <= 200_000
        assert database.execute("SELECT MIN(n) FROM events").fetchone()[0] >= verdict.begins_at
        words = "SELECT COUNT(*) FROM words WHERE words MATCH 'file'"
        events = database.execute("SELECT COUNT(*) FROM events").fetchone()
        assert database.execute(words).fetchone() == events
    # What was let go is not taken for another story when it comes again, nor is what is still there.
    assert [archive.take(machine, frame) for frame in (frames[0], frames[-1])] == ["known", "known"]
    assert archive.problems(machine) == []
    with archive._changing() as database:
        database.execute("DELETE FROM frames WHERE first = (SELECT MIN(first) FROM frames)")
    assert archive.verify(machine).problem is not None


def _half(number: int) -> dict[str, Any]:
    """Every other record is the outcome of an act some records before it."""
    if number % 2:
        return {"kind": "intent", "operationId": f"id-{number}", "ok": None}
    return {"kind": "outcome", "operationId": f"id-{max(1, number - 15)}"}


async def test_a_machine_cannot_keep_others_from_asking_to_join(fleet: Fleet, tmp_path: Path) -> None:
    liar = await fleet.add("liar")
    here = liar.member._presence("stays")
    refused = 0
    for number in range(8):
        (tmp_path / str(number)).mkdir(mode=0o700)
        other = Signer(own_identity(tmp_path / str(number), f"machine-{number}"))
        said = here.model_copy(update={"machine_id": f"machine-{number}", "name": "x", "number": 1, "at": time.time()})
        try:
            fleet.hub.machines.receive(other.fingerprint, said)
        except PermissionDenied:
            refused += 1
    assert refused == 4
    assert (await fleet.add("newcomer", trust=False)).member._signer.fingerprint in fleet.hub.machines.by_key


async def test_a_machine_that_says_too_much_of_itself_is_not_heard(fleet: Fleet) -> None:
    liar = await fleet.add("liar")
    said = liar.member._presence("stays").model_copy(
        update={"number": 10_000, "scopes": {secrets.token_hex(32): [_scope(n) for n in range(200)]}}
    )
    sealed = liar.member._signer.sealed("here", said.model_dump(by_alias=True))
    async with fleet.wiretap("cl.v1.nothing") as (link, _):
        await link.publish(messages.presence(liar.joined.seat), sealed)
        assert await refusals(fleet.hub_road, 1) == ["invalid_request"]
    known = fleet.hub.machines.by_key[liar.member._signer.fingerprint]
    assert known.presence is not None and known.presence.number < 10_000


def _scope(number: int) -> Any:
    from computer_linker.fleet.messages import SharedScope

    return SharedScope(id=f"s{number}", type="folder", capabilities=["c" * 60] * 50)


async def test_an_id_belongs_to_the_machine_that_was_trusted_with_it(fleet: Fleet, tmp_path: Path) -> None:
    honest = await fleet.add("honest", trust=False)
    (tmp_path / "evil").mkdir(mode=0o700)
    evil = Signer(own_identity(tmp_path / "evil", "honest-id"))
    said = honest.member._presence("stays").model_copy(update={"number": 1, "seat": messages.seat_of(evil.fingerprint)})
    fleet.hub.machines.receive(evil.fingerprint, said)
    fleet.hub.machines.trust(honest.member._signer.fingerprint)
    with pytest.raises(InvalidRequest):
        fleet.hub.machines.trust(evil.fingerprint)
    with pytest.raises(PermissionDenied):
        fleet.hub.machines.receive(evil.fingerprint, said.model_copy(update={"number": 2}))
    assert not fleet.hub.machines.by_key[evil.fingerprint].trusted


class Odd(Member):
    """A machine whose answers have a strange kind of picture, or come from another's seat."""

    seat: str | None = None
    answer: dict[str, Any] = {}

    def _run(self, request: CallBody, hub: AllowedHub) -> None:
        if self.seat is None:
            self._spawn(self._send_answer(request, hub, self._to(request, hub) | self.answer))
            return
        where = messages.reply(messages.seat_of(hub.fingerprint), self.seat, request.call_id)
        self._spawn(self.link.publish(where, b"\0\0\0\0\0\0\0\2" + b"half"))
        super()._run(request, hub)


@pytest.mark.parametrize("mime", ["image/png\r\nx: y", "", "a/b/c", 5, "IMAGE/\x1b[31m"])
async def test_a_picture_of_a_strange_kind_is_not_passed_on(fleet: Fleet, mime: Any) -> None:
    liar = await fleet.add("liar")
    await fleet.restart(liar, Odd)
    assert isinstance(liar.member, Odd)
    envelope = b'{"ok": true, "operationId": "x", "data": {}}'
    liar.member.answer = {"envelope": envelope, "attachments": [[mime, b"x"]]}
    assert (await fleet.call("file.read", "a", scope="liar/app"))["error"]["code"] == "execution_failed"


async def test_half_an_answer_from_anothers_seat_breaks_no_answer(fleet: Fleet) -> None:
    laptop, desk = await fleet.add("laptop"), await fleet.add("desk")
    (laptop.root / "a").write_text("a")
    await fleet.restart(laptop, Odd)
    assert isinstance(laptop.member, Odd)
    laptop.member.seat = desk.joined.seat
    assert (await fleet.call("file.read", "a", scope="laptop/app"))["data"]["content"] == "a"
    assert "another_machine" in await refusals(fleet.hub_road, 1)
    await until(lambda: not fleet.hub._waiting)
