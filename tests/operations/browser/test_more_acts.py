"""Choices, keys, editable text, dialogs and waiting: what a form of the real world needs."""

from pathlib import Path

import pytest

from support.pages import browser_road, ref_of

pytestmark = [pytest.mark.anyio, pytest.mark.clients]

PAGE = """<!doctype html><title>d</title>
<button onclick="document.title=confirm('Sure?')">Ask</button>
<button onclick="document.title='hello '+prompt('Name?')">Name me</button>
<label>Size <select onchange="document.title='size '+this.value"><option value=1>Small<option value=2>Large</select></label>
<form onsubmit="document.title='sent '+q.value;return false"><label>Query <input id=q></label></form>
<label>Short <input maxlength=3></label>
<div contenteditable role=textbox aria-label=Notes></div>
<label><input type=checkbox onchange="document.title='box '+this.checked">Agree</label>
<button onclick="setTimeout(() => { late.textContent = 'It is late' }, 600)">Later</button><p id=late>soon</p>
"""


async def test_choices_keys_and_editable_text(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        (road.root / "d.html").write_text(PAGE)
        await road.data("browser.open", "d.html")
        chosen = await road.call("browser.fill", await ref_of(road, "combobox", "Size"), input={"text": "Large"})
        assert (chosen["effect"], chosen["data"]["title"]) == ("confirmed", "size 2"), chosen
        query = await ref_of(road, "textbox", "Query")
        await road.data("browser.fill", query, input={"text": "käse"})
        sent = await road.call("browser.press", query, input={"key": "Enter"})
        assert (sent["effect"], sent["data"]["title"]) == ("confirmed", "sent käse"), sent
        short = await road.call("browser.fill", await ref_of(road, "textbox", "Short"), input={"text": "abcdef"})
        assert short["effect"] in ("confirmed", "partial")
        notes = await road.call("browser.fill", await ref_of(road, "textbox", "Notes"), input={"text": "two words"})
        assert notes["effect"] == "confirmed", notes
        box = await road.call("browser.click", await ref_of(road, "checkbox", "Agree"))
        assert (box["effect"], box["data"]["title"]) == ("confirmed", "box true")
        for wrong in ("NoSuchKey", "", "Enter Enter", "--flag", "Control+"):
            assert await road.code("browser.press", query, input={"key": wrong}) == "invalid_request"


async def test_a_dialog_is_told_and_answered(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        (road.root / "d.html").write_text(PAGE)
        await road.data("browser.open", "d.html")
        assert await road.code("browser.dialog", "accept") == "not_found"
        name_me = await ref_of(road, "button", "Name me")
        opened = await road.call("browser.click", await ref_of(road, "button", "Ask"))
        assert (opened["effect"], opened["data"]["dialogOpened"]) == ("confirmed", True), opened
        assert await road.code("browser.snapshot") == "conflict"
        answered = await road.data("browser.dialog", "dismiss")
        assert (answered["type"], answered["message"], answered["title"]) == ("confirm", "Sure?", "false")
        await road.data("browser.click", name_me)
        answered = await road.data("browser.dialog", "accept", input={"text": "Ada"})
        assert (answered["type"], answered["title"]) == ("prompt", "hello Ada")


async def test_waiting_ends_with_the_text_or_the_time(tmp_path: Path) -> None:
    async with browser_road(tmp_path) as road:
        (road.root / "d.html").write_text(PAGE)
        await road.data("browser.open", "d.html")
        await road.data("browser.click", await ref_of(road, "button", "Later"), options={"verify": False})
        waited = await road.data("browser.wait", input={"textAppears": "It is late", "textGone": "soon"})
        assert waited["matched"] is True
        never = await road.data("browser.wait", input={"titleContains": "never"}, options={"timeoutSeconds": 0.5})
        assert never["matched"] is False
        assert 400 < never["elapsedMs"] < 60_000
        assert await road.code("browser.wait", input={}) == "invalid_request"
