"""A page in Chromium that replaces its elements and shows effects late: no act is confirmed that did nothing."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from benchmarks.honesty.stage import PROGRAMS, Log
from benchmarks.honesty.toolkits import FLAGS
from benchmarks.honesty.web import Page, serving

from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop, missing
from support.road import Road, computer_scope
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]
ROUTE = {"window": "web rig"}


@dataclass
class Shown:
    """The page, what it handled, and the service."""

    page: Page
    log: Log
    road: Road

    async def find(self, name: str) -> str:
        condition = {"selectorExists": {"role": "button", "name": name}}
        wait = {"input": {"condition": condition}, "options": {"timeoutSeconds": 50}}
        found = await self.road.data("desktop.wait_until", ROUTE, scope="desk", **wait)
        ref: str = found["elements"][0]["ref"]
        return ref

    async def click(self, name: str) -> dict[str, Any]:
        at = {"selector": {"role": "button", "name": name}, "route": ROUTE}
        return await self.road.call("desktop.click", at, scope="desk")


@pytest.fixture
async def shown(tmp_path: Path, desktop: Desktop) -> AsyncIterator[Shown]:
    if lack := missing("chromium"):
        pytest.skip(f"not installed: {', '.join(lack)}")
    log = Log(tmp_path / "page.log")
    log.path.write_text("")
    computer = this_computer(desktop.env)
    await computer.accessibility.applications()
    async with (
        serving(PROGRAMS / "rig.html", log.path) as page,
        Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as road,
    ):
        process = desktop.launch("chromium", f"--user-data-dir={tmp_path / 'profile'}", *FLAGS, page.address)
        try:
            yield Shown(page, log, road)
        finally:
            desktop.end(process)


async def test_an_element_that_the_page_has_just_replaced_is_not_confirmed_as_clicked(shown: Shown) -> None:
    for _ in range(3):
        ref = await shown.find("Fresh")
        shown.page.tell("recreate")
        await until(lambda: "did recreate" in shown.log.new())
        shown.log.mark()
        reply = await shown.road.call("desktop.click", ref, scope="desk")
        with anyio.move_on_after(0.5):
            await until(shown.log.new)
        happened = shown.log.new() == ["Fresh"]
        assert happened or reply.get("effect") != "confirmed", reply
        assert reply["ok"] or shown.log.new() == [], reply
        shown.log.mark()


async def test_an_effect_that_shows_late_is_not_taken_for_that_of_the_next_click(shown: Shown) -> None:
    await shown.find("Alpha")
    replies: dict[str, dict[str, Any]] = {}

    async def client(name: str) -> None:
        replies[name] = await shown.click(name)

    for _ in range(3):
        async with anyio.create_task_group() as group:
            for name in ("Alpha", "Dead"):
                group.start_soon(client, name)
        await until(shown.log.new)
        assert shown.log.new() == ["Alpha"]
        shown.log.mark()
        assert replies["Dead"].get("effect") == "unverifiable", replies
