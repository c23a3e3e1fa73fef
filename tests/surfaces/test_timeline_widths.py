"""The timeline page at the widths of a phone, a narrow window and a wide one: nothing is cut off or squeezed."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from computer_linker.audit.page import timeline_page
from support.browser import phone
from support.pair import events_of
from support.road import LOCAL, Road

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium")]


async def test_what_happened_can_be_read_at_every_width(tmp_path: Path) -> None:
    async with Road.open(tmp_path) as road:
        who = replace(LOCAL, client="a client with a name that is as long as a name can be, and a version/1.0.0-rc1")
        await road.call("file.write", "a-folder/with-a-long-name/notes.txt", input={"content": "x"}, principal=who)
        events = await events_of(road, "file.write")
    page = tmp_path / "page.html"
    page.write_text(timeline_page(events, title="History"))  # type: ignore[arg-type]
    seen = {}
    with phone(tmp_path / "profile", is_wide=True) as browser:
        browser.open(page.as_uri())
        for width in (390, 1000, 1280):
            browser.send(
                "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
            )
            browser.until(f"innerWidth == {width} && document.querySelector('.event .what') !== null")
            seen[width] = (
                browser.eval("document.querySelector('.event .what').getBoundingClientRect().width"),
                browser.eval(
                    "Math.max(...[...document.querySelectorAll('#filters *')].map(e => e.getBoundingClientRect().right))"
                ),
            )
    assert all(what >= 150 and right <= width for width, (what, right) in seen.items()), seen
