"""Controls of windows that are minimized, restored or moved at the moment of an act: they are hit, or nothing is."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop, missing
from support.forms import Form, lacking, on_the_bus, open_form
from support.harness import Harness
from support.road import Road, computer_scope
from support.session import Session
from support.waiting import until_awaited

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]
TIMES = 4


@pytest.fixture
async def session(tmp_path: Path, desktop: Desktop) -> AsyncIterator[Session]:
    if lack := [*missing("xdotool"), *filter(None, [lacking("gtk3")])]:
        pytest.skip(f"not installed: {', '.join(lack)}")
    form = open_form(desktop, "gtk3")
    computer = this_computer(desktop.env)
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as road:
        await on_the_bus(computer, form)
        yield Session(road, form)
    assert form.process is not None
    desktop.end(form.process)


def _window(desktop: Desktop, form: Form) -> str:
    found = desktop.run("xdotool", "search", "--onlyvisible", "--name", f"^{form.title}$").stdout.split()
    return found[0].decode()


def _is_click(number: int, event: dict[str, Any]) -> bool:
    return bool(event["count"] == number)


async def _until_minimized(session: Session) -> None:
    async def is_minimized() -> bool:
        windows = (await session.data("window.list"))["windows"]
        return any(one["title"] == session.form.title and "minimized" in one["states"] for one in windows)

    await until_awaited(is_minimized)


async def test_a_control_of_a_minimized_window_is_pressed_where_it_comes_to_lie(
    session: Session, desktop: Desktop
) -> None:
    behind = Harness.open(desktop, "Behind", at=(0, 0), size=(1280, 780))
    behind.next("focus_in")
    window = _window(desktop, session.form)
    desktop.run("xdotool", "windowactivate", "--sync", window)
    ref = (await session.find("button", "Press me"))[0]["ref"]
    for number in range(TIMES):
        desktop.run("xdotool", "windowminimize", window)
        await _until_minimized(session)
        reply = await session.call("desktop.click", ref)
        assert reply.get("effect") == "confirmed", reply
        await session.form.told("clicked", partial(_is_click, number + 1))
    assert len(session.form.events("clicked")) == TIMES
    assert [one for one in behind.quiet() if one["event"] == "button_down"] == []
    desktop.end(behind.process)


async def test_a_control_of_a_window_that_is_just_restored_is_pressed(session: Session, desktop: Desktop) -> None:
    behind = Harness.open(desktop, "Behind", at=(0, 0), size=(1280, 780))
    behind.next("focus_in")
    window = _window(desktop, session.form)
    desktop.run("xdotool", "windowactivate", "--sync", window)
    ref = (await session.find("button", "Press me"))[0]["ref"]
    for number in range(TIMES):
        desktop.run("xdotool", "windowminimize", window)
        await _until_minimized(session)
        desktop.run("xdotool", "windowactivate", window)
        reply = await session.call("desktop.click", ref)
        assert reply.get("effect") == "confirmed", reply
        await session.form.told("clicked", partial(_is_click, number + 1))
    assert [one for one in behind.quiet() if one["event"] == "button_down"] == []
    desktop.end(behind.process)


async def test_a_control_of_a_moving_window_is_hit_or_refused(session: Session, desktop: Desktop) -> None:
    behind = Harness.open(desktop, "Behind", at=(0, 0), size=(1280, 780))
    behind.next("focus_in")
    window = _window(desktop, session.form)
    desktop.run("xdotool", "windowactivate", "--sync", window)
    ref = (await session.find("button", "Press me"))[0]["ref"]
    steps = " ".join(f"windowmove {window} {40 + 12 * step} 10 sleep 0.03" for step in range(40))
    hits = 0
    for _ in range(TIMES):
        mover = desktop.launch("xdotool", *steps.split())
        reply = await session.call("desktop.click", ref)
        hits += reply["ok"]
        assert reply["ok"] or reply["error"]["code"] == "conflict", reply
        await anyio.to_thread.run_sync(mover.wait)
    assert len(session.form.events("clicked")) == hits
    assert [one for one in behind.quiet() if one["event"] == "button_down"] == []
    desktop.end(behind.process)
