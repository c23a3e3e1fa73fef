"""KDE's own portal on its compositor without a screen: the window that logs what reached it is the judge.

Its portal 5.27 tells the person by a notice and asks nothing, so no dialog of KDE's is proven here.
"""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from computer_linker.errors import UnsupportedPlatform
from computer_linker.model.geometry import Point
from support.compositors import compositor, is_on_the_bus
from support.desktop import Desktop, missing
from support.forms import lacking
from support.harness import Harness

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]
PROGRAM = Path(__file__).parent.parent / "fixtures" / "apps" / "gtk3_log_window.py"
_BACKEND = "/usr/lib/x86_64-linux-gnu/libexec/xdg-desktop-portal-kde"
_PORTAL = "/usr/libexec/xdg-desktop-portal"


@pytest.fixture
async def kde() -> AsyncIterator[Desktop]:
    if lack := missing("kwin_wayland", "pipewire", "dbus-daemon", _BACKEND, _PORTAL):
        pytest.skip(f"not installed: {', '.join(lack)}")
    if toolkit := lacking("gtk3"):
        pytest.skip(f"not installed: {toolkit}")
    with compositor("kwin_wayland", portals=True) as desktop:
        desktop.launch("pipewire")
        desktop.launch(_BACKEND, env={"QT_QPA_PLATFORM": "wayland"})
        await is_on_the_bus(desktop, "org.freedesktop.impl.portal.desktop.kde")
        desktop.launch(_PORTAL)
        await is_on_the_bus(desktop, "org.freedesktop.portal.Desktop")
        yield desktop


@pytest.fixture
async def computer(kde: Desktop) -> AsyncIterator[Computer]:
    # As a session of KDE's has it: the compositor is of version 5.
    opened = this_computer({**kde.env, "KDE_SESSION_VERSION": "5"})
    yield opened
    await opened.aclose()


@pytest.fixture
async def window(kde: Desktop, computer: Computer) -> AsyncIterator[Harness]:
    argv = ["/usr/bin/python3", "-W", "ignore", str(PROGRAM), "Log", "336699", "fullscreen", "smooth"]
    harness = Harness(kde.launch(*argv, stdout=subprocess.PIPE))
    harness.next("placed", width=1280, height=800)
    harness.next("focus_in")
    with anyio.fail_after(20):
        # The window may be drawn before it takes part in what the pointer does.
        while not any(one["event"] == "motion" for one in harness.quiet(0.2)):
            await computer.pointer.move(Point(x=640, y=300))
            await computer.pointer.move(Point(x=660, y=320))
    yield harness
    kde.end(harness.process)


async def test_what_is_clicked_typed_dragged_and_scrolled_arrives(computer: Computer, window: Harness) -> None:
    await computer.click(Point(x=321, y=234), button="right", modifiers=["ctrl"])
    pressed = window.next("button_down")
    assert (pressed["x"], pressed["y"], pressed["button"], pressed["ctrl"]) == (321, 234, 3, True)
    await computer.keyboard.type_text("hello\n42")
    window.next("text", text="hello\n42")
    await computer.hotkey("ctrl", "a")
    await computer.press("delete")
    window.next("text", text="")
    await computer.keyboard.type_text("Hello, World! ~%")
    window.next("text", text="Hello, World! ~%")
    await computer.drag(Point(x=200, y=200), Point(x=500, y=300))
    assert window.next("button_down")["x"] == 200
    assert window.next("button_up")["x"] == 500
    await computer.scroll(Point(x=400, y=300), dy=1)
    turned = window.next("scroll")
    assert (turned["dx"], turned["dy"]) == (0, 1)
    await computer.scroll(Point(x=400, y=300), dx=-1)
    turned = window.next("scroll")
    assert (turned["dx"], turned["dy"]) == (-1, 0)
    with pytest.raises(UnsupportedPlatform):
        await computer.keyboard.type_text("你")


async def test_who_is_stopped_lets_go_and_sends_nothing_more(computer: Computer, window: Harness) -> None:
    async with anyio.create_task_group() as tasks:
        path = [Point(x=100 + step % 900, y=100 + step % 500) for step in range(0, 90_000, 90)]
        tasks.start_soon(computer.pointer.drag, path)
        await anyio.to_thread.run_sync(window.next, "button_down")
        tasks.cancel_scope.cancel()
    window.next("button_up")
    assert window.quiet() == []
