"""file.copy through a hub: streamed in bounded memory, whole or absent whatever happens to machine, hub or server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgpack
import pytest

from computer_linker.fleet.member import Member
from computer_linker.fleet.messages import CallBody, seat_of
from computer_linker.fleet.seal import Signer
from computer_linker.fleet.settings import AllowedHub
from computer_linker.fleet.streams import WINDOW
from computer_linker.model.envelope import Reply
from computer_linker.transports.peer.identity import own_identity
from support.fleet import Fleet, Machine, until
from support.noise import noise

pytestmark = pytest.mark.anyio
SIZE = 9_000_000 + 17


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet.open(tmp_path) as made:
        yield made


async def push(fleet: Fleet, name: str, destination: str, scope: str = "laptop/app", **options: Any) -> dict[str, Any]:
    where = {"destination": destination, "destinationScope": scope}
    return await fleet.call("file.copy", name, input=where, options=options)


async def pull(fleet: Fleet, name: str, destination: str, scope: str = "laptop/app", **options: Any) -> dict[str, Any]:
    where = {"destination": destination, "sourceScope": scope}
    return await fleet.call("file.copy", name, input=where, options=options)


def left(machine: Machine) -> list[str]:
    return sorted(path.name for path in machine.root.iterdir())


@pytest.mark.parametrize("size", [0, 1, (1 << 20) + 1, SIZE])
async def test_a_file_goes_there_and_comes_back_as_it_was(fleet: Fleet, size: int) -> None:
    laptop = await fleet.add("laptop")
    content = noise(size)
    (fleet.hub_road.root / "a.bin").write_bytes(content)
    sent = await push(fleet, "a.bin", "in/b.bin", createParents=True)
    assert (sent["ok"], sent.get("effect")) == (True, "confirmed"), sent
    assert (laptop.root / "in" / "b.bin").read_bytes() == content
    back = await pull(fleet, "in/b.bin", "c.bin")
    assert (back["ok"], back.get("effect")) == (True, "confirmed"), back
    assert (fleet.hub_road.root / "c.bin").read_bytes() == content
    # The last message of a stream may still be on its way when the call is answered.
    await until(lambda: not fleet.hub.streams._open and not laptop.member._streams._open)


@pytest.mark.parametrize(
    ("way", "target", "destination", "code"),
    [
        (pull, "gone", "x", "not_found"), (pull, "../x", "x", "path_out_of_scope"), (pull, ".env", "x", "permission_denied"),
        (pull, "there", "../x", "path_out_of_scope"), (pull, "there", "mine", "already_exists"),
        (push, "gone", "x", "not_found"), (push, "mine", "../../x", "path_out_of_scope"),
        (push, "mine", ".git/hooks/pre-commit", "permission_denied"), (push, "mine", "there", "already_exists"),
        (push, "folder", "x", "invalid_request"),
    ],
)  # fmt: skip
async def test_what_either_side_refuses_leaves_nothing_on_either(
    fleet: Fleet, way: Any, target: str, destination: str, code: str
) -> None:
    laptop = await fleet.add("laptop")
    (laptop.root / "there").write_text("there")
    (laptop.root / ".env").write_text("SECRET=1")
    (fleet.hub_road.root / "mine").write_text("mine")
    (fleet.hub_road.root / "folder").mkdir()
    refused = await way(fleet, target, destination)
    assert refused["error"]["code"] == code, refused
    assert left(laptop) == [".env", "there"] and (laptop.root / "there").read_text() == "there"
    assert sorted(path.name for path in fleet.hub_road.root.iterdir()) == ["folder", "mine"]
    assert (fleet.hub_road.root / "mine").read_text() == "mine"


async def test_the_machine_decides_what_is_written_and_read_there(fleet: Fleet) -> None:
    reader = await fleet.add("reader", "app:fs:read")
    closed = await fleet.add("closed", "nothing")
    (reader.root / "a").write_text("a")
    (closed.root / "a").write_text("a")
    (fleet.hub_road.root / "mine").write_text("mine")
    assert (await push(fleet, "mine", "x", "reader/app"))["error"]["code"] == "permission_denied"
    assert (await push(fleet, "mine", "x", "closed/app"))["error"]["code"] == "unknown_scope"
    assert (await pull(fleet, "a", "x", "closed/app"))["error"]["code"] == "unknown_scope"
    assert (await push(fleet, "mine", "x", "[all]/app"))["error"]["code"] == "invalid_request"
    assert (await pull(fleet, "a", "x", "[all]/app"))["error"]["code"] == "invalid_request"
    assert left(reader) == left(closed) == ["a"]
    assert [path.name for path in fleet.hub_road.root.iterdir()] == ["mine"]


async def test_a_client_cannot_ask_for_a_stream_itself(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    content = {"content": "", "encoding": "stream"}
    refused = await fleet.call("file.write", "x", scope="laptop/app", input=content)
    assert refused["error"]["code"] == "invalid_request"
    assert left(laptop) == []


async def test_both_histories_tell_of_the_copy(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    (fleet.hub_road.root / "mine").write_text("mine")
    assert (await push(fleet, "mine", "theirs"))["ok"]
    events = (await laptop.road.data("history.timeline"))["events"]
    assert [(e["op"], e["target"], e["effect"]) for e in events if e["op"].startswith("file.")] == [
        ("file.create", "theirs", "confirmed")
    ]
    here = (await fleet.hub_road.data("history.timeline"))["events"]
    assert [(e["op"], e["effect"]) for e in here if e["op"] == "file.copy"] == [("file.copy", "confirmed")]


async def test_never_more_is_under_way_than_the_taker_has_room_for(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    (fleet.hub_road.root / "big").write_bytes(noise(SIZE * 3))
    async with fleet.wiretap("cl.v1.flow.>") as (_, heard):
        assert (await push(fleet, "big", "big"))["ok"]
        said = [msgpack.unpackb(msgpack.unpackb(message.data)[3]) for message in heard]
    sent = taken = 0
    for body in said:
        if body["to"] == laptop.member._signer.fingerprint and body["what"] == "data":
            sent = body["at"] + len(body["data"])
            assert sent - taken <= WINDOW
        elif body["what"] == "taken":
            taken = body["at"]
    assert sent > SIZE * 3 and taken > 0
    assert {body["attempt"] for body in said} == {1}


@asynccontextmanager
async def half_way(fleet: Fleet, laptop: Machine, way: Any) -> AsyncIterator["asyncio.Future[dict[str, Any]]"]:
    """A copy of a large file, of which some pieces are on their way."""
    source = fleet.hub_road.root if way is push else laptop.root
    (source / "big").write_bytes(noise(SIZE * 3))
    async with fleet.wiretap("cl.v1.flow.>") as (_, heard):
        copying = asyncio.ensure_future(way(fleet, "big", "copy"))
        await until(lambda: len(heard) > 8)
        yield copying


def nothing_was_left(fleet: Fleet, laptop: Machine, way: Any) -> bool:
    here = sorted(path.name for path in fleet.hub_road.root.iterdir())
    return (here, left(laptop)) == ((["big"], []) if way is push else ([], ["big"]))


@pytest.mark.parametrize("way", [push, pull])
async def test_a_copy_goes_on_after_the_server_was_killed_in_the_middle(fleet: Fleet, way: Any) -> None:
    laptop = await fleet.add("laptop")
    async with half_way(fleet, laptop, way) as copying:
        (stream,) = fleet.hub.streams._open.values()
        fleet.server.kill()
        fleet.server.start()
        done = await copying
    assert stream._attempt > 1
    assert (done["ok"], done.get("effect")) == (True, "confirmed"), done
    roots = (fleet.hub_road.root, laptop.root) if way is push else (laptop.root, fleet.hub_road.root)
    assert (roots[0] / "big").read_bytes() == (roots[1] / "copy").read_bytes()


@pytest.mark.parametrize("way", [push, pull])
async def test_a_copy_over_a_server_that_stays_away_leaves_nothing(fleet: Fleet, way: Any) -> None:
    laptop = await fleet.add("laptop")
    async with half_way(fleet, laptop, way) as copying:
        fleet.server.kill()
        error = (await copying)["error"]
    assert error["code"] == "provider_unavailable"
    # What was pulled is here, where it is known that nothing was kept.
    assert error["details"].get("effect") == ("unverifiable" if way is push else None)
    await until(lambda: not laptop.member._streams._open)
    assert nothing_was_left(fleet, laptop, way)


@pytest.mark.parametrize("way", [push, pull])
async def test_a_machine_that_stops_in_the_middle_leaves_nothing(fleet: Fleet, way: Any) -> None:
    laptop = await fleet.add("laptop")
    async with half_way(fleet, laptop, way) as copying:
        await laptop.member.aclose()
        assert not (await copying)["ok"]
    assert nothing_was_left(fleet, laptop, way)


@pytest.mark.parametrize("way", [push, pull])
async def test_a_copy_that_is_cancelled_leaves_nothing(fleet: Fleet, way: Any) -> None:
    laptop = await fleet.add("laptop")
    async with half_way(fleet, laptop, way) as copying:
        copying.cancel()
        await asyncio.wait([copying])
    await until(lambda: not laptop.member._streams._open and not fleet.hub.streams._open)
    assert nothing_was_left(fleet, laptop, way)


async def test_what_others_say_on_a_stream_changes_nothing(fleet: Fleet, tmp_path: Path) -> None:
    laptop = await fleet.add("laptop")
    content = noise(SIZE)
    (fleet.hub_road.root / "big").write_bytes(content)
    (tmp_path / "stranger").mkdir(mode=0o700)
    stranger = Signer(own_identity(tmp_path / "stranger", "hub-id"))
    mine: set[bytes] = set()
    first: list[bytes] = []
    async with fleet.wiretap("cl.v1.nothing") as (link, _):

        async def meddle(message: Any) -> None:
            if message.data in mine:
                return
            body = msgpack.unpackb(msgpack.unpackb(message.data)[3])
            first.append(message.data)
            lies = [{"data": b"lie"}, {"what": "lost"}, {"what": "open", "attempt": 9}]
            # Signed by nobody who may; as it was, once more; of another machine's; and what came first, late.
            for raw in (*(stranger.sealed("flow", body | lie) for lie in lies), message.data, first[0], b"", b"\xc1"):
                mine.add(raw)
                await link.publish(message.subject, raw)

        assert link._client is not None
        await link._client.subscribe("cl.v1.flow.>", cb=meddle)
        await link.flush()
        done = await push(fleet, "big", "copy")
    assert (done["ok"], (laptop.root / "copy").read_bytes() == content) == (True, True)
    assert {"unknown_key", "invalid_request"} <= set(await laptop.refusals(2))


class Flood(Member):
    """A machine of another make, that sends without asking whether there is room."""

    async def _performed(self, request: CallBody, hub: AllowedHub) -> Reply:
        assert request.stream is not None
        seat = seat_of(hub.fingerprint)
        with self._streams.expected(self.link, request.stream, hub.fingerprint, seat):
            stream = self._streams._open[request.stream]
            await asyncio.to_thread(self._flood, stream)
        return await super()._performed(request, hub)

    def _flood(self, stream: Any) -> None:
        stream.accept(0, 10)
        piece = (1 << 20).to_bytes(4, "big") + b"x" * (400 * 1024 - 4)
        for number in range(400):
            stream.send("data", 1, number * len(piece), piece)


async def test_a_machine_that_sends_more_than_there_is_room_for_is_not_held_in_memory(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    (laptop.root / "a").write_text("a")
    await fleet.restart(laptop, Flood)
    held: list[int] = []
    fetching = asyncio.ensure_future(pull(fleet, "a", "x"))
    while not fetching.done():
        held += [stream._came - stream._gone for stream in fleet.hub.streams._open.values()]
        await asyncio.wait([fetching], timeout=0.001)
    assert not fetching.result()["ok"]
    assert 0 < max(held) <= 2 * WINDOW
    assert not list(fleet.hub_road.root.iterdir())


class Mute(Member):
    """A machine that takes a call and then neither takes bytes nor answers."""

    async def _performed(self, request: CallBody, hub: AllowedHub) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError("it is never told to go on")


async def test_a_machine_that_never_takes_up_the_stream_is_given_up_within_its_time(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    await fleet.restart(laptop, Mute)
    (fleet.hub_road.root / "a").write_text("a")
    async with asyncio.timeout(60):
        refused = await asyncio.gather(push(fleet, "a", "b"), pull(fleet, "a", "b"))
    assert [one["error"]["code"] for one in refused] == ["provider_unavailable"] * 2, refused
    assert sorted(path.name for path in fleet.hub_road.root.iterdir()) == ["a"] and left(laptop) == []
    assert not fleet.hub.streams._open
