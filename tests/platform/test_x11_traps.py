"""Controls that are easily mistaken for others, and windows that take the keyboard: nothing else is reached."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop
from support.forms import APPS, Form, lacking
from support.road import Road, computer_scope
from support.session import Session
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


class Traps(Form):
    @property
    def app(self) -> str:
        return "gtk3-traps"


@asynccontextmanager
async def traps(folder: Path, desktop: Desktop, *titles: str) -> AsyncIterator[Session]:
    if lack := lacking("gtk3"):
        pytest.skip(f"not installed: {lack}")
    computer = this_computer(desktop.env)
    await computer.accessibility.applications()
    journal = folder / "traps.jsonl"
    process = desktop.launch("/usr/bin/python3", str(APPS / "gtk3_traps.py"), str(journal), *titles)
    form = Traps("gtk3", process, journal)
    try:
        async with Road.open(folder, scopes=[computer_scope()], computer=computer) as road:
            await until(lambda: len(form.events("ready")) == len(titles))
            session = Session(road, form)
            condition = {"selectorExists": {"role": "spinbutton", "name": "Amount"}}
            wait = {"input": {"condition": condition}, "options": {"timeoutSeconds": 30}}
            await session.data("desktop.wait_until", {"app": form.app}, **wait)
            yield session
    finally:
        desktop.end(process)


async def _last_click(session: Session, count: int) -> tuple[int, str]:
    """The window and the button of the latest of so many clicks."""
    await until(lambda: len(session.form.events("clicked")) == count)
    last = session.form.events("clicked")[-1]
    return last["window"], last["name"]


async def test_a_button_is_pressed_in_its_own_window_of_two_with_one_title(tmp_path: Path, desktop: Desktop) -> None:
    async with traps(tmp_path, desktop, "twin", "twin") as session:
        found = await session.find("button", "Keep")
        places = [one["bounds"]["x"] for one in found]
        numbers = [places.index(x) for x in sorted(places)]
        for count, number in enumerate((0, 1, 0), 1):
            reply = await session.call("desktop.click", found[numbers[number]]["ref"])
            assert reply["ok"], reply
            assert await _last_click(session, count) == (number, "Keep")


async def test_a_title_that_two_windows_have_is_refused_and_their_ids_are_not(tmp_path: Path, desktop: Desktop) -> None:
    async with traps(tmp_path, desktop, "twin", "twin") as session:
        selector = {"role": "button", "name": "Keep"}
        reply = await session.call("desktop.click", {"selector": selector, "route": {"window": "twin"}})
        assert reply["error"]["code"] == "conflict"
        assert session.form.events("clicked") == []
        candidates: list[dict[str, Any]] = reply["error"]["details"]["candidates"]
        assert len(candidates) == 2
        for number, one in enumerate(sorted(candidates, key=lambda one: one["bounds"]["x"])):
            at = {"selector": selector, "route": {"window": one["window"]}}
            assert (await session.call("desktop.click", at))["ok"]
            assert await _last_click(session, number + 1) == (number, "Keep")


async def test_a_key_for_a_field_does_not_answer_a_dialog_that_took_the_keyboard(
    tmp_path: Path, desktop: Desktop
) -> None:
    async with traps(tmp_path, desktop, "traps") as session:
        reply = await session.call("desktop.press", session.at("textbox", "Popper"), input={"key": "enter"})
        await session.form.told("asked")
        # Either the key reached the field before the dialog opened, or it was refused.
        assert session.form.events("wiped") == []
        assert reply["ok"] is bool(session.form.events("entered")), reply
        if not reply["ok"]:
            assert reply["error"]["code"] == "conflict"


async def test_text_for_a_list_of_choices_is_refused_and_the_list_stays_folded(
    tmp_path: Path, desktop: Desktop
) -> None:
    async with traps(tmp_path, desktop, "choices") as session:
        reply = await session.call("desktop.type_text", session.at("combobox", "Colour"), input={"text": "Green"})
        assert reply["error"]["code"] == "conflict", reply
        assert session.form.events("unfolded") == []


async def test_a_number_is_confirmed_once_the_spinner_has_it_and_not_when_it_has_another(
    tmp_path: Path, desktop: Desktop
) -> None:
    async with traps(tmp_path, desktop, "numbers") as session:
        at = session.at("spinbutton", "Amount")
        reply = await session.call("desktop.type_text", at, input={"text": "42"}, options={"clearBefore": True})
        assert reply["effect"] == "confirmed", reply
        assert [one["value"] for one in session.form.events("amount")] == [42]
        beyond = await session.call("desktop.type_text", at, input={"text": "250"}, options={"clearBefore": True})
        assert beyond["effect"] == "partial", beyond
        assert [one["value"] for one in session.form.events("amount")] == [42, 100]


async def test_a_button_that_its_dialog_enables_a_moment_after_the_text_is_pressed(
    tmp_path: Path, desktop: Desktop
) -> None:
    async with traps(tmp_path, desktop, "late") as session:
        refused = await session.call("desktop.click", session.at("button", "Later"))
        assert refused["error"]["code"] == "conflict", refused
        assert session.form.events("clicked") == []
        await session.data("desktop.type_text", session.at("spinbutton", "Amount"), input={"text": "7"})
        clicked = await session.call("desktop.click", session.at("button", "Later"))
        assert clicked["ok"], clicked
        await session.form.told("clicked", lambda one: one["name"] == "Later")


async def test_a_drag_between_buttons_that_does_nothing_is_not_confirmed(tmp_path: Path, desktop: Desktop) -> None:
    async with traps(tmp_path, desktop, "dragged") as session:
        to = session.at("button", "Keep")
        effects = []
        for _ in range(3):
            reply = await session.call("desktop.drag", session.at("button", "Delete"), input={"to": to})
            assert reply["ok"], reply
            effects.append(reply["effect"])
        assert "confirmed" not in effects, effects
        assert session.form.events("clicked") == []
