"""Controls that are reached only with care: rows that a double click opens, buttons out of view, windows that are none."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop
from support.forms import APPS, Form, lacking, on_the_bus
from support.road import Road, computer_scope
from support.session import Session
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


class Window(Form):
    """One of the windows here: its program's name is that of its application."""

    @property
    def app(self) -> str:
        return self.toolkit


@asynccontextmanager
async def opened(folder: Path, desktop: Desktop, python: str, program: str) -> AsyncIterator[Session]:
    if lack := lacking(program.partition("-")[0]):
        pytest.skip(f"not installed: {lack}")
    computer = this_computer(desktop.env)
    await computer.accessibility.applications()
    journal = folder / f"{program}.jsonl"
    process = desktop.launch(python, str(APPS / f"{program.replace('-', '_')}.py"), str(journal))
    form = Window(program, process, journal)
    await until(lambda: form.events("ready"))
    async with Road.open(folder, scopes=[computer_scope()], computer=computer) as road:
        await on_the_bus(computer, form)
        yield Session(road, form)
    desktop.end(process)


@pytest.fixture
async def lists(tmp_path: Path, desktop: Desktop) -> AsyncIterator[Session]:
    async with opened(tmp_path, desktop, "/usr/bin/python3", "gtk3-lists") as session:
        yield session


@pytest.fixture
async def dates(tmp_path: Path, desktop: Desktop) -> AsyncIterator[Session]:
    async with opened(tmp_path, desktop, sys.executable, "qt6-date") as session:
        yield session


async def test_a_double_click_that_follows_clicks_opens_its_row_once(lists: Session) -> None:
    for number in range(4):
        row = lists.at("cell", f"Row {number}")
        await lists.data("desktop.click", row)
        await lists.data("desktop.click", row)
        # Two clicks of their own are no double click.
        assert len(lists.form.events("opened")) == number
        await lists.data("desktop.click", row, input={"count": 2})
        await until(lambda number=number: len(lists.form.events("opened")) == number + 1)  # type: ignore[misc]
        assert lists.form.events("opened")[-1]["row"] == number


async def test_a_button_out_of_view_is_scrolled_to_and_pressed(lists: Session) -> None:
    for number, name in enumerate(("Item 29", "Item 0", "Item 14"), 1):
        reply = await lists.call("desktop.click", lists.at("button", name))
        assert reply["ok"], reply
        await until(lambda number=number: len(lists.form.events("clicked")) == number)  # type: ignore[misc]
        assert lists.form.events("clicked")[-1]["name"] == name


async def test_a_splash_window_is_no_window_of_a_document(lists: Session) -> None:
    await lists.form.told("splashed")
    windows = (await lists.data("window.list"))["windows"]
    assert [one["title"] for one in windows if one["title"] in ("Lists", "Splash")] == ["Lists"]


async def test_a_date_field_that_holds_no_date_is_not_confirmed(dates: Session) -> None:
    day, number = dates.at("spinbutton", "Day"), dates.at("spinbutton", "Number")
    reply = await dates.call("desktop.type_text", day, input={"text": "7"}, options={"clearBefore": True})
    assert reply["effect"] != "confirmed", reply
    assert dates.form.events("day") == []
    reply = await dates.call("desktop.type_text", number, input={"text": "7"}, options={"clearBefore": True})
    assert reply["effect"] == "confirmed", reply
    assert [one["value"] for one in dates.form.events("number")] == [7]
