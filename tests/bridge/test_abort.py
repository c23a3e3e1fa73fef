"""After an abort nothing further is pressed and nothing stays held: on X11, on sway, and simulated; the window's log decides."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.model.geometry import Point, Rect
from support.desktop import Desktop, missing
from support.harness import Harness
from support.road import Road, computer_scope
from support.sway import sway_desktop
from support.waiting import until, until_awaited

pytestmark = pytest.mark.anyio

MANY = 50_000
PROGRAM = Path(__file__).parent.parent / "fixtures" / "apps" / "gtk3_log_window.py"
ROUTE = Rect(x=100, y=100, width=500, height=400)


@pytest.fixture(scope="module")
def sway() -> Iterator[Desktop]:
    if lacking := missing("sway"):
        pytest.skip(f"not installed: {lacking}")
    gtk = ["/usr/bin/python3", "-c", "import gi; gi.require_version('Gtk', '3.0')"]
    if subprocess.run(gtk, check=False).returncode:
        pytest.skip("not installed: python3-gi, gir1.2-gtk-3.0")
    with sway_desktop() as opened:
        yield opened


@asynccontextmanager
async def on_sway(sway: Desktop) -> AsyncIterator[tuple[Computer, Harness]]:
    computer = this_computer(sway.env)
    process = sway.launch("/usr/bin/python3", "-W", "ignore", str(PROGRAM), "Log", stdout=subprocess.PIPE)
    harness = Harness(process)
    try:
        harness.next("ready")
        found = await until_awaited(lambda: computer.windows.list())
        await computer.windows.place(found[0].id, ROUTE)
        yield computer, harness
    finally:
        sway.end(process)
        await computer.aclose()


@asynccontextmanager
async def on_x11(desktop: Desktop) -> AsyncIterator[tuple[Computer, Harness]]:
    computer, harness = this_computer(desktop.env), Harness.open(desktop, "Abort", at=(100, 100), size=(500, 400))
    try:
        harness.next("focus_in")
        yield computer, harness
    finally:
        desktop.end(harness.process)
        await computer.aclose()


async def seen(harness: Harness, kind: str, **facts: Any) -> dict[str, Any]:
    return await anyio.to_thread.run_sync(lambda: harness.next(kind, 20, **facts))


async def stop_typing(computer: Computer, harness: Harness, key: str) -> int:
    """Type very much, stop at the first key that arrives, then press z; how many keys came before the z."""
    async with anyio.create_task_group() as group:
        group.start_soon(computer.keyboard.type_text, "A" * MANY)
        await seen(harness, key)
        with anyio.fail_after(60):
            group.cancel_scope.cancel()
    await computer.keyboard.press(["z"])
    last = {"keyval": ord("z")} if key == "key" else {"keysym": ord("z")}
    before = len(harness.seen)
    end = await seen(harness, key, **last)
    # A shift that were still held would make it a capital Z, which is another key; the state says the same.
    assert end["state"] & 1 == 0
    after = [one for one in harness.quiet() if one["event"] in (key, "text")]
    assert [one["text"][-1] for one in after] in ([], ["z"]), "only the z itself may still show in the text"
    return sum(one["event"] == key for one in harness.seen[before:])


@pytest.mark.desktop
async def test_typing_on_x11_ends_with_the_abort(desktop: Desktop) -> None:
    async with on_x11(desktop) as (computer, harness):
        assert await stop_typing(computer, harness, "key_down") < MANY


@pytest.mark.desktop
async def test_typing_on_sway_ends_with_the_abort(sway: Desktop) -> None:
    async with on_sway(sway) as (computer, harness):
        await computer.click(Point(x=300, y=460))
        assert await stop_typing(computer, harness, "key") < MANY


async def stop_dragging(computer: Computer, harness: Harness) -> None:
    """Drag back and forth for long, stop with the button held: it is let go, and nothing moves any more."""
    path = [Point(x=150, y=150), Point(x=500, y=300)] * 400
    async with anyio.create_task_group() as group:

        async def drag() -> None:
            await computer.pointer.drag(path, modifiers=["ctrl"])

        group.start_soon(drag)
        await seen(harness, "button_down")
        await seen(harness, "motion")
        group.cancel_scope.cancel()
    up = await seen(harness, "button_up")
    assert sum(one["event"] == "button_down" for one in harness.seen) == 1
    after = await anyio.to_thread.run_sync(harness.quiet)
    assert not {one["event"] for one in after} & {"button_down", "button_up"}, after
    await computer.click(Point(x=200, y=200))
    down = await seen(harness, "button_down")
    # Neither the button nor the ctrl key of the drag is still held.
    assert not down.get("ctrl", False) and not down.get("state", 0) & 0x104, (up, down)


@pytest.mark.desktop
async def test_a_drag_on_x11_lets_go_with_the_abort(desktop: Desktop) -> None:
    async with on_x11(desktop) as (computer, harness):
        await stop_dragging(computer, harness)


@pytest.mark.desktop
async def test_a_drag_on_sway_lets_go_with_the_abort(sway: Desktop) -> None:
    async with on_sway(sway) as (computer, harness):
        await stop_dragging(computer, harness)


async def test_desktop_abort_ends_typing_on_a_simulated_desktop(tmp_path: Path) -> None:
    computer = SimulatedComputer()
    window = computer.world.open("xterm")  # which takes text by keys alone
    answers: list[dict[str, Any]] = []
    async with Road.open(tmp_path, [computer_scope()], computer) as road, anyio.create_task_group() as group:

        async def type_much() -> None:
            given = {"text": "a" * 90_000}
            answers.append(await road.call("desktop.type_text", scope="desk", input=given))

        group.start_soon(type_much)
        await until(lambda: window.text, step_s=0.001)
        ended = await road.data("desktop.abort", scope="desk")
        length = len(window.text)
        assert ended["aborted"] and 0 < length < 90_000
        await until(lambda: answers)
        assert answers[0]["error"]["code"] == "aborted"
        assert len(window.text) == length, "nothing is typed once the abort is answered"


async def test_halt_leaves_nothing_that_still_types(tmp_path: Path) -> None:
    computer = SimulatedComputer()
    window = computer.world.open("xterm")
    async with Road.open(tmp_path, [computer_scope()], computer) as road, anyio.create_task_group() as group:
        group.start_soon(lambda: road.call("desktop.type_text", scope="desk", input={"text": "a" * 90_000}))
        await until(lambda: window.text, step_s=0.001)
        queues = road.app.dispatcher.queues
        assert queues.halt() == 1
        assert await queues.until_still(20)
        length = len(window.text)
        await anyio.wait_all_tasks_blocked()
        assert len(window.text) == length < 90_000
    assert await queues.until_still(0.1), "and it is still when nothing runs"
