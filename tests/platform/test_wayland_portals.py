"""GNOME's compositor without a screen, used by remote control: a window that logs what reached it is the judge."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from computer_linker.errors import InvalidRequest, OsPermissionRequired, UnsupportedPlatform
from computer_linker.model.geometry import Point
from support.compositors import compositor
from support.desktop import Desktop, missing
from support.forms import lacking
from support.harness import Harness
from support.road import Road, computer_scope
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]
PROGRAM = Path(__file__).parent.parent / "fixtures" / "apps" / "gtk3_log_window.py"
_LEFT, _RIGHT = 1, 3


_FRACTIONS = "[org/gnome/mutter]\nexperimental-features=['scale-monitor-framebuffer']\n"


def _needs() -> None:
    if lack := missing("mutter", "pipewire", "dbus-daemon"):
        pytest.skip(f"not installed: {', '.join(lack)}")
    if toolkit := lacking("gtk3"):
        pytest.skip(f"not installed: {toolkit}")


@pytest.fixture(scope="module")
def mutter() -> Iterator[Desktop]:
    _needs()
    with compositor("mutter") as desktop:
        desktop.launch("pipewire")
        yield desktop


async def _pipewire(desktop: Desktop) -> None:
    await until(lambda: (Path(desktop.env["XDG_RUNTIME_DIR"]) / "pipewire-0").exists())


@pytest.fixture
async def computer(mutter: Desktop) -> AsyncIterator[Computer]:
    await _pipewire(mutter)
    opened = this_computer(mutter.env)
    yield opened
    await opened.aclose()


@pytest.fixture
async def window(mutter: Desktop, computer: Computer) -> AsyncIterator[Harness]:
    """A GTK window over the whole display: its coordinates are the desktop's."""
    harness = await _opened(mutter, computer, width=1280, height=800)
    yield harness
    mutter.end(harness.process)


async def _opened(desktop: Desktop, computer: Computer, *, width: int, height: int) -> Harness:
    argv = ["/usr/bin/python3", "-W", "ignore", str(PROGRAM), "Log", "336699", "fullscreen", "smooth"]
    harness = Harness(desktop.launch(*argv, stdout=subprocess.PIPE))
    harness.next("placed", width=width, height=height)
    # A keyboard is there from the first act on; before, nothing has its focus.
    await computer.pointer.move(Point(x=640, y=300))
    harness.next("focus_in")
    harness.quiet()
    harness.seen.clear()
    return harness


def _pressed(event: dict[str, Any]) -> tuple[float, float, int]:
    return event["x"], event["y"], event["button"]


async def test_pointer_and_keyboard_are_there_because_input_was_seen_to_arrive(computer: Computer) -> None:
    facets = computer.capabilities().facets
    assert (facets["pointer"].state, facets["pointer"].backend, facets["pointer"].is_proven) == (
        "present",
        "mutter",
        True,
    )
    assert (facets["keyboard"].state, facets["keyboard"].backend) == ("present", "mutter")


async def test_a_click_reaches_the_window_where_it_was_meant(computer: Computer, window: Harness) -> None:
    await computer.click(Point(x=321, y=234))
    assert _pressed(window.next("button_down")) == (321, 234, _LEFT)
    assert _pressed(window.next("button_up")) == (321, 234, _LEFT)
    await computer.click(Point(x=900, y=100), button="right", modifiers=["ctrl"])
    pressed = window.next("button_down")
    assert (_pressed(pressed), pressed["ctrl"]) == ((900, 100, _RIGHT), True)
    assert await computer.pointer.position() == Point(x=900, y=100)


async def test_typed_text_and_chords_arrive(computer: Computer, window: Harness) -> None:
    text = "Hello, World! (a_b) ~42% <x>\nZz"
    assert await computer.keyboard.can_type(text)
    await computer.keyboard.type_text(text)
    window.next("text", text=text)
    await computer.hotkey("ctrl", "a")
    await computer.press("delete")
    window.next("text", text="")


async def test_what_the_layout_lacks_is_refused_and_nothing_is_typed(computer: Computer, window: Harness) -> None:
    assert not await computer.keyboard.can_type("abc 你好")
    with pytest.raises(UnsupportedPlatform):
        await computer.keyboard.type_text("abc 你好")
    with pytest.raises(InvalidRequest):
        await computer.keyboard.press(["ctrl", "好"])
    with pytest.raises(InvalidRequest):
        await computer.click(Point(x=5000, y=10))
    await computer.keyboard.type_text("z")
    assert window.next("text")["text"] == "z"
    assert [one for one in window.seen if one["event"] in ("key", "button_down")][:-1] == []


async def test_the_wheel_turns_by_notches(computer: Computer, window: Harness) -> None:
    await computer.scroll(Point(x=400, y=300), dy=2)
    assert [(one["dx"], one["dy"]) for one in window.take("scroll", 2)] == [(0, 1), (0, 1)]
    await computer.scroll(Point(x=400, y=300), dx=-1)
    seen = window.next("scroll")
    assert (seen["dx"], seen["dy"]) == (-1, 0)
    assert [one for one in window.quiet() if one["event"] == "scroll"] == []


async def test_a_drag_moves_while_it_is_held(computer: Computer, window: Harness) -> None:
    await computer.drag(Point(x=200, y=200), Point(x=500, y=300))
    assert _pressed(window.next("button_down")) == (200, 200, _LEFT)
    assert window.next("motion")["x"] < 500
    assert _pressed(window.next("button_up")) == (500, 300, _LEFT)


async def test_who_is_stopped_lets_go_and_sends_nothing_more(computer: Computer, window: Harness) -> None:
    await computer.pointer.move(Point(x=100, y=100))
    async with anyio.create_task_group() as tasks:
        path = [Point(x=100 + step % 900, y=100 + step % 500) for step in range(0, 90_000, 90)]
        tasks.start_soon(computer.pointer.drag, path)
        await anyio.to_thread.run_sync(window.next, "button_down")
        await anyio.to_thread.run_sync(window.next, "motion")
        tasks.cancel_scope.cancel()
    window.next("button_up")
    assert window.quiet() == []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(computer.keyboard.type_text, "abcdefghij" * 500)
        await anyio.to_thread.run_sync(window.next, "text")
        tasks.cancel_scope.cancel()
    await computer.press("end")
    assert window.next("key", keyval=0xFF57)
    assert len([one for one in window.seen if one["event"] == "text"][-1]["text"]) < 5000
    await computer.click(Point(x=300, y=300))
    pressed = window.next("button_down")
    assert (pressed["ctrl"], pressed["shift"]) == (False, False)


async def test_the_operations_reach_the_window(tmp_path: Path, computer: Computer, window: Harness) -> None:
    async with Road.open(tmp_path, [computer_scope("desk")], computer) as road:
        await road.data("desktop.hotkey", scope="desk", input={"keys": ["shift", "a"]})
        window.next("text", text="A")
        await road.data("desktop.press", scope="desk", input={"key": "b"})
        window.next("text", text="Ab")


async def test_a_long_text_is_typed_where_nothing_can_be_pasted(computer: Computer, window: Harness) -> None:
    text = "The quick brown fox; jumps over 12 lazy dogs? " * 4
    entered = await computer.type_text(text)
    assert (entered.method, window.next("text", text=text)["text"]) == ("keys", text)


_DRAGS = """
import anyio, os
from computer_linker.computer.local.probe import this_computer
from computer_linker.model.geometry import Point

async def main():
    path = [Point(x=100 + step % 900, y=100 + step % 500) for step in range(0, 900_000, 90)]
    await this_computer(os.environ).pointer.drag(path)

anyio.run(main)
"""


async def test_a_button_is_released_when_the_process_that_held_it_is_killed(
    computer: Computer, mutter: Desktop, window: Harness
) -> None:
    drags = mutter.launch(sys.executable, "-c", _DRAGS)
    window.next("button_down", timeout=20)
    window.next("motion")
    drags.kill()
    window.next("button_up")
    mutter.end(drags)
    assert window.quiet() == []


async def test_a_session_the_desktop_ended_stays_ended(computer: Computer, mutter: Desktop, window: Harness) -> None:
    await computer.click(Point(x=50, y=60))
    window.next("button_up")
    # Its picture streams end with PipeWire, as they do when the person presses stop.
    (pipewire,) = [one for one in mutter.processes if one.args == ("pipewire",)]
    mutter.end(pipewire)
    try:
        with anyio.fail_after(60):
            while True:
                try:
                    await computer.pointer.move(Point(x=51, y=60))
                except OsPermissionRequired:
                    break
        window.quiet()
        with pytest.raises(OsPermissionRequired):
            await computer.click(Point(x=50, y=60))
        assert window.quiet() == []
    finally:
        mutter.launch("pipewire")


async def test_a_click_on_a_scaled_display_lands_where_it_was_meant() -> None:
    _needs()
    with compositor("mutter", settings=_FRACTIONS) as desktop:
        desktop.launch("pipewire")
        await _pipewire(desktop)
        _scale(desktop, 1.25)
        computer = this_computer(desktop.env)
        try:
            (display,) = await computer.screen.displays()
            assert (display.scale, display.bounds.width) == (1.25, 1024)
            window = await _opened(desktop, computer, width=1024, height=640)
            await computer.click(Point(x=1001, y=123))
            assert _pressed(window.next("button_down")) == (1001, 123, _LEFT)
        finally:
            await computer.aclose()


def _scale(desktop: Desktop, scale: float) -> None:
    name = "org.gnome.Mutter.DisplayConfig"
    desktop.run("gdbus", "wait", "--session", "--timeout", "20", name)
    call = ["gdbus", "call", "--session", "-d", name, "-o", "/org/gnome/Mutter/DisplayConfig", "-m"]
    state = desktop.run(*call, f"{name}.GetCurrentState").stdout.decode()
    serial = state.removeprefix("(uint32 ").split(",")[0]
    wanted = f"[(0, 0, {scale}, uint32 0, true, [('Meta-0', '1280x800@60.000', @a{{sv}} {{}})])]"
    done = desktop.run(*call, f"{name}.ApplyMonitorsConfig", serial, "1", wanted, "@a{sv} {}")
    assert done.returncode == 0, done.stderr
