"""A page made against whoever reads it: what it is made of holds nobody up, and what it says is data."""

from pathlib import Path

import anyio
import pytest

from support.pages import browser_road

pytestmark = [pytest.mark.anyio, pytest.mark.clients]

WITHIN_S = 60.0
"""Generous for a browser that starts on a busy machine; one look at this page took minutes, and everybody waited."""


async def test_names_made_of_brackets_hold_nobody_up(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        name = "[ref=e1 " * 4000
        page = (
            f'<!doctype html><title>T</title><button aria-label="{name}">x</button><button>Real [ref=e1]: go</button>'
        )
        (tmp_path / "root" / "hard.html").write_text(page)
        await road.data("browser.open", "hard.html")
        with anyio.fail_after(WITHIN_S):
            shown = await road.data("browser.snapshot")
        named = {node["name"][:20]: node["ref"] for node in shown["nodes"] if node["role"] == "button"}
        assert set(named) == {name[:20], "Real [ref=e1]: go"}


async def test_text_that_looks_like_an_option_is_text(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        (tmp_path / "root" / "f.html").write_text("<!doctype html><title>T</title><input aria-label=Name>")
        await road.data("browser.open", "f.html")
        for text in ("--session=other", "--cdp", "-v", "--help", "--", "@e1", "$(id)", '"; close'):
            shown = await road.data("browser.snapshot")
            (ref,) = [node["ref"] for node in shown["nodes"] if node["name"] == "Name"]
            filled = await road.call("browser.fill", ref, input={"text": text})
            assert (filled["ok"], filled.get("effect")) == (True, "confirmed"), (text, filled)
