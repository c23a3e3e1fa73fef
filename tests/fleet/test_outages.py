"""The server dies, freezes or comes back; machines are slow or dead: nothing is done twice, nothing unknown is called known."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from computer_linker.audit.history import every_event
from computer_linker.audit.query import Filter
from computer_linker.audit.store import AuditStore
from computer_linker.model.history import HistoryEvent
from support.fleet import Fleet, Machine, until

pytestmark = pytest.mark.anyio

CAT = {"input": {"command": ["cat", "pipe"]}}


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet.open(tmp_path) as made:
        yield made


def blocked(machine: Machine) -> Path:
    """A file that nobody finishes reading before it is written."""
    os.mkfifo(machine.root / "pipe")
    return machine.root / "pipe"


async def opened_for_reading(pipe: Path) -> int:
    """A handle to write with, once somebody reads."""

    def attempt() -> int:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return 0

    handle: int = await until(attempt)
    return handle


async def test_each_machine_of_many_answers_for_itself_the_slow_and_the_dead_too(fleet: Fleet) -> None:
    quick, slow, dead = [await fleet.add(name) for name in ("quick", "slow", "dead")]
    (quick.root / "pipe").write_text("at once")
    blocked(slow)
    # Dead without a word, and not long enough ago to be missed: its heartbeat is known to be slow.
    await dead.member.link.aclose()
    envelope = await fleet.call("command.run", ".", scope="[all within=3]/app", **CAT)
    assert (envelope["ok"], envelope["effect"]) == (True, "unverifiable")
    told = {item["machine"]: item for item in envelope["data"]["results"]}
    assert {name: item["state"] for name, item in told.items()} == {
        "quick": "answered",
        "slow": "late",
        "dead": "unreachable",
    }
    assert told["quick"]["envelope"]["data"]["stdout"] == "at once"
    assert (told["slow"]["error"]["code"], told["slow"]["error"]["details"]["effect"]) == ("timeout", "unverifiable")
    assert "effect" not in told["dead"]["error"]["details"]
    assert {key: envelope["data"][key] for key in ("matched", "answered", "late", "unreachable", "failed")} == {
        "matched": 3, "answered": 1, "late": 1, "unreachable": 1, "failed": 2,
    }  # fmt: skip
    os.close(await opened_for_reading(slow.root / "pipe"))


async def test_a_call_outlives_a_server_that_is_killed_and_is_done_once(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    pipe = blocked(laptop)
    running = asyncio.ensure_future(fleet.call("command.run", ".", scope="laptop/app", **CAT))
    writer = await opened_for_reading(pipe)
    fleet.server.kill()
    await until(lambda: fleet.state("laptop-id") == "unknown")
    refused = await fleet.call("file.list", ".", scope="laptop/app")
    assert refused["error"]["code"] == "provider_unavailable"
    os.write(writer, b"while nobody could hear")
    os.close(writer)
    fleet.server.start()
    envelope = await running
    assert (envelope["ok"], envelope["data"]["stdout"]) == (True, "while nobody could hear")
    events = (await laptop.road.data("history.timeline"))["events"]
    assert [event["op"] for event in events].count("command.run") == 1
    await until(lambda: fleet.state("laptop-id") == "online")


async def test_an_act_cut_off_by_a_partition_is_reported_as_not_known(tmp_path: Path) -> None:
    async with Fleet.open(tmp_path, resume_s=0.5) as fleet:
        laptop = await fleet.add("laptop")
        pipe = blocked(laptop)
        running = asyncio.ensure_future(fleet.call("command.run", ".", scope="laptop/app", **CAT))
        writer = await opened_for_reading(pipe)
        fleet.server.freeze()
        try:
            envelope = await running
        finally:
            fleet.server.thaw()
        assert envelope["error"]["code"] == "provider_unavailable"
        assert envelope["error"]["details"]["effect"] == "unverifiable"
        store = fleet.hub_road.app.services.use(AuditStore)

        def told() -> list[HistoryEvent]:
            store.index.catch_up()
            events = every_event(store, Filter())
            return [event for event in events if event["op"] == "command.run" and event["ok"] is not None]

        (event,) = await until(told)
        assert (event["ok"], event["effect"], event["scope"]) == (False, "unverifiable", "laptop/app")
        os.close(writer)


async def test_an_act_on_a_machine_that_starts_anew_meanwhile_is_reported_as_not_known(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    pipe = blocked(laptop)
    running = asyncio.ensure_future(fleet.call("command.run", ".", scope="laptop/app", **CAT))
    writer = await opened_for_reading(pipe)
    await laptop.member.link.aclose()
    await laptop.restart()
    envelope = await running
    assert (envelope["ok"], envelope["error"]["details"]["effect"]) == (False, "unverifiable")
    os.close(writer)


async def test_a_cancelled_call_ends_on_the_machine_too(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    pipe = blocked(laptop)
    running = asyncio.ensure_future(fleet.call("command.run", ".", scope="laptop/app", **CAT))
    writer = await opened_for_reading(pipe)
    running.cancel()

    def nobody_reads() -> bool:
        try:
            os.write(writer, b"x")
        except BrokenPipeError:
            return True
        except BlockingIOError:
            return False
        return False

    await until(nobody_reads)
    os.close(writer)


async def test_a_large_answer_comes_whole(fleet: Fleet) -> None:
    laptop = await fleet.add("laptop")
    text = "".join(f"line {number}\n" for number in range(400_000))
    (laptop.root / "large.txt").write_text(text)
    many = {"input": {"paths": ["large.txt"] * 4}, "options": {"maxBytes": 900_000, "maxTotalBytes": 4_000_000}}
    read = await fleet.call("file.read_many", scope="laptop/app", **many)
    contents = [file["content"] for file in read["data"]["files"]]
    assert sum(map(len, contents)) > 3_000_000, "three times what the server takes in one message"
    assert all(text.startswith(content) for content in contents)
