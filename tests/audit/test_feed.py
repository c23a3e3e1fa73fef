"""The live feed of the history: bounded, in order, and a wait that ends with the next record."""

import asyncio

import pytest

from computer_linker.audit.store import LiveFeed

pytestmark = pytest.mark.anyio


async def test_a_reader_gets_what_came_after_what_it_knows() -> None:
    feed = LiveFeed()
    for number in range(5):
        feed.add(str(number))
    assert feed.since(3) == ["3", "4"] and feed.since(5) == []
    # A number of an earlier service: everything is new.
    assert feed.since(9) == ["0", "1", "2", "3", "4"]


async def test_only_the_newest_are_kept() -> None:
    feed = LiveFeed()
    for number in range(3000):
        feed.add(str(number))
    assert (feed.number, len(feed.since(0)), feed.since(0)[-1]) == (3000, 1000, "2999")


async def test_every_waiting_reader_is_woken_by_one_record_and_none_stays_behind() -> None:
    feed = LiveFeed()
    readers = [asyncio.create_task(feed.changed(0, 30)) for _ in range(10)]
    await asyncio.sleep(0)  # lets the readers begin to wait
    assert not any(reader.done() for reader in readers)
    feed.add("x")
    await asyncio.wait_for(asyncio.gather(*readers), 10)
    assert feed._readers == set()
    await feed.changed(1, 0.01)
    assert feed._readers == set()
