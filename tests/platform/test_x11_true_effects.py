"""What is said of an act's effect on applications that tick, are slow, freeze, or have unusual controls."""

import os
import shutil
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop, missing
from support.forms import APPS, Form, lacking, on_the_bus
from support.road import Road, computer_scope
from support.session import Session
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


class Ticking(Form):
    """The window in which things change by themselves."""

    @property
    def app(self) -> str:
        return "gtk3-ticking"


@pytest.fixture
async def road(tmp_path: Path, desktop: Desktop) -> AsyncIterator[Road]:
    computer = this_computer(desktop.env)
    await computer.accessibility.applications()
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as opened:
        yield opened


@pytest.fixture
async def ticking(
    tmp_path: Path, desktop: Desktop, road: Road, request: pytest.FixtureRequest
) -> AsyncIterator[Session]:
    if lack := lacking("gtk3"):
        pytest.skip(f"not installed: {lack}")
    journal = tmp_path / "ticking.jsonl"
    how = getattr(request, "param", ())
    process = desktop.launch("/usr/bin/python3", str(APPS / "gtk3_ticking.py"), str(journal), *how)
    form = Ticking("gtk3", process, journal)
    await until(lambda: form.events("ready"))
    computer = this_computer(desktop.env)
    await on_the_bus(computer, form)
    await computer.aclose()
    yield Session(road, form)
    desktop.end(process)


async def _clicked(session: Session, name: str) -> dict[str, Any]:
    reply = await session.call("desktop.click", session.at("button", name))
    assert reply["ok"], reply
    return reply


async def test_a_clock_is_no_evidence_for_a_dead_button(ticking: Session) -> None:
    effects = [(await _clicked(ticking, "Dead"))["effect"] for _ in range(8)]
    assert "confirmed" not in effects
    # It really was pressed each time; nothing came of it.
    assert len(ticking.form.events("clicked")) == 8


@pytest.mark.parametrize(
    "ticking",
    [
        pytest.param(("1", "1000"), id="a-clock"),
        pytest.param(("12", "700"), id="rows"),
        pytest.param(("12", "3000"), id="refreshed"),
    ],
    indirect=True,
)
async def test_what_starts_to_change_after_a_quiet_time_is_no_evidence(ticking: Session) -> None:
    await _clicked(ticking, "Live")
    # Long enough to take what keeps still for calm.
    never = {"condition": {"selectorExists": {"role": "button", "name": "Never"}}}
    await ticking.call("desktop.wait_until", {"app": ticking.form.app}, input=never, options={"timeoutSeconds": 7})
    assert ticking.form.process is not None
    os.kill(ticking.form.process.pid, signal.SIGUSR1)
    await until(lambda: ticking.form.events("changed"))
    effects = [(await _clicked(ticking, "Dead"))["effect"] for _ in range(6)]
    assert "confirmed" not in effects, effects
    assert len(ticking.form.events("clicked")) == 7


async def test_a_live_button_is_confirmed_beside_a_clock(ticking: Session) -> None:
    replies = [await _clicked(ticking, "Live") for _ in range(6)]
    # An application that has just started may not tell of its first changes yet.
    assert replies[0]["effect"] in ("confirmed", "unverifiable"), replies
    assert [one["effect"] for one in replies[1:]] == ["confirmed"] * 5, replies
    assert len(ticking.form.events("clicked")) == 6


async def test_a_slow_application_is_waited_for(ticking: Session) -> None:
    reply = await _clicked(ticking, "Slow")
    # The answer comes after the effect, and never takes the wait for nothing.
    assert len(ticking.form.events("clicked")) == 1
    assert reply["effect"] in ("confirmed", "unverifiable"), reply


async def test_a_frozen_application_is_named_as_frozen(ticking: Session) -> None:
    ref = (await ticking.find("button", "Live"))[0]["ref"]
    assert ticking.form.process is not None
    os.kill(ticking.form.process.pid, signal.SIGSTOP)
    try:
        for target in (ref, ticking.at("button", "Live")):
            started = time.monotonic()
            reply = await ticking.call("desktop.click", target)
            assert reply.get("error", {}).get("code") == "timeout", reply
            assert "frozen" in reply["error"]["message"]
            assert time.monotonic() - started < 60
    finally:
        os.kill(ticking.form.process.pid, signal.SIGCONT)
    assert ticking.form.events("clicked") == []


async def test_buttons_that_call_themselves_toggles_are_judged_by_what_they_do(road: Road, desktop: Desktop) -> None:
    if lack := missing("galculator", "xclip"):
        pytest.skip(f"not installed: {', '.join(lack)}")
    process = desktop.launch("galculator")
    condition = {"selectorExists": {"role": "button", "name": "7"}}
    await road.data("desktop.wait_until", {"app": "galculator"}, scope="desk", input={"condition": condition})
    effects = {}
    for key in ("1", "2", "+", "3", "0", "="):
        at = {"selector": {"role": "toggle-button", "name": key}, "route": {"app": "galculator"}}
        reply = await road.call("desktop.click", at, scope="desk")
        effects[key] = reply.get("effect", reply.get("error"))
    await road.data("desktop.hotkey", scope="desk", input={"keys": ["ctrl", "c"]})
    with anyio.move_on_after(30):
        await until(lambda: _clipboard(desktop) == "42")
    assert _clipboard(desktop) == "42", effects
    # An operator changes nothing that shows, so it may be unverifiable, but never taken for nothing.
    assert {effects[key] for key in "1230="} == {"confirmed"}, effects
    assert effects["+"] in ("confirmed", "unverifiable"), effects
    desktop.end(process)


def _clipboard(desktop: Desktop) -> str:
    assert shutil.which("xclip")
    return desktop.run("xclip", "-o", "-selection", "clipboard").stdout.decode().strip()
