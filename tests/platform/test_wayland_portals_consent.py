"""GNOME's own portal on its compositor without a screen: its real dialog asks, and input arrives only after a yes."""

import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from computer_linker.errors import OsPermissionRequired
from computer_linker.model.geometry import Point
from support.compositors import compositor, is_on_the_bus
from support.desktop import Desktop, missing
from support.forms import lacking
from support.harness import Harness
from support.waiting import until_awaited

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]
PROGRAM = Path(__file__).parent.parent / "fixtures" / "apps" / "gtk3_log_window.py"
_BACKEND = "/usr/libexec/xdg-desktop-portal-gnome"
_PORTAL = "/usr/libexec/xdg-desktop-portal"
_AT = Point(x=40, y=30)


@pytest.fixture
async def gnome() -> AsyncIterator[Desktop]:
    """Mutter with GNOME's portal, for one test: an answer holds for as long as a session."""
    if lack := missing("mutter", "pipewire", "dbus-daemon", _BACKEND, _PORTAL):
        pytest.skip(f"not installed: {', '.join(lack)}")
    if toolkit := lacking("gtk3"):
        pytest.skip(f"not installed: {toolkit}")
    with compositor("mutter", portals=True) as desktop:
        desktop.launch("pipewire")
        await is_on_the_bus(desktop, "org.gnome.Mutter.RemoteDesktop")
        desktop.launch(_BACKEND)
        await is_on_the_bus(desktop, "org.freedesktop.impl.portal.desktop.gnome")
        desktop.launch(_PORTAL)
        await is_on_the_bus(desktop, "org.freedesktop.portal.Desktop")
        yield desktop


@pytest.fixture
async def computer(gnome: Desktop) -> AsyncIterator[Computer]:
    opened = this_computer(gnome.env)
    yield opened
    await opened.aclose()


@pytest.fixture
def window(gnome: Desktop) -> Iterator[Harness]:
    process = gnome.launch(
        "/usr/bin/python3", "-W", "ignore", str(PROGRAM), "Log", "336699", "fullscreen", stdout=subprocess.PIPE
    )
    harness = Harness(process)
    harness.next("placed", width=1280, height=800)
    yield harness
    gnome.end(process)


async def _answer(desktop: Desktop, *, button: str, allowing: bool) -> None:
    """Do in the dialog what a person would."""
    person = this_computer(desktop.env)
    try:

        async def in_the_dialog() -> Sequence[Any]:
            elements: list[Any] = []
            for app in await person.accessibility.applications():
                if app.name == "xdg-desktop-portal-gnome" and app.windows:
                    elements = list((await person.accessibility.tree(app.root)).elements)
            return elements if any(one.name.endswith(button) for one in elements) else []

        elements = await until_awaited(in_the_dialog)
        if allowing:
            switch = next(one for one in elements if one.role == "check-box")
            await person.accessibility.perform(switch.id)
        pressed = next(one for one in elements if one.role == "push-button" and one.name.endswith(button))
        await person.accessibility.perform(pressed.id)
    finally:
        await person.aclose()


async def test_input_arrives_once_the_person_has_agreed(computer: Computer, gnome: Desktop, window: Harness) -> None:
    facet = computer.capabilities().facets["pointer"]
    assert (facet.state, facet.backend) == ("present", "portal")
    with anyio.move_on_after(1):
        await computer.pointer.move(_AT)
    # The caller has gone, the question stays; the next call finds its answer.
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(computer.pointer.move, _AT)
        await _answer(gnome, button="Share", allowing=True)
    window.next("focus_in")
    await computer.click(_AT)
    pressed = window.next("button_down")
    assert (pressed["x"], pressed["y"]) == (_AT.x, _AT.y)
    await computer.keyboard.type_text("yes")
    window.next("text", text="yes")


@pytest.mark.parametrize(("button", "allowing"), [("Cancel", True), ("Share", False)])
async def test_a_no_is_a_refusal_and_nothing_arrives(
    computer: Computer, gnome: Desktop, window: Harness, button: str, allowing: bool
) -> None:
    async with anyio.create_task_group() as tasks:

        async def refused() -> None:
            with pytest.raises(OsPermissionRequired):
                await computer.click(_AT)

        tasks.start_soon(refused)
        await _answer(gnome, button=button, allowing=allowing)
    assert [one for one in [*window.seen, *window.quiet()] if one["event"].startswith("button")] == []


async def test_until_somebody_answers_it_is_refused_with_a_remedy(computer: Computer, window: Harness) -> None:
    with pytest.raises(OsPermissionRequired) as caught:
        await computer.keyboard.type_text("no")
    assert caught.value.details["remedy"]
    assert [one for one in [*window.seen, *window.quiet()] if one["event"] == "text"] == []
