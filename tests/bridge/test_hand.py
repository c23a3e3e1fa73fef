"""The person's own hand ends an act in its middle; what programs make up, our own acts above all, does not.

The hand is that of an outer desktop: what it does reaches the inner one through the inner one's own mouse and keyboard.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from computer_linker.computer.simulated import SimulatedComputer
from computer_linker.errors import UnsupportedPlatform
from computer_linker.model.geometry import Point
from support.desktop import missing, start_bus
from support.nested import Nested, nested_desktop
from support.road import Road, computer_scope
from support.sway import sway_desktop
from support.waiting import until, until_awaited

pytestmark = pytest.mark.anyio

MUCH = 40_000


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nested]:
    if lacking := missing("Xvfb", "Xephyr", "openbox", "xterm"):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    with nested_desktop(tmp_path_factory.mktemp("nested")) as opened:
        yield opened


@pytest.fixture
async def hand(nested: Nested) -> AsyncIterator[Computer]:
    """The person, at the mouse and keyboard of the inner desktop."""
    opened = this_computer(nested.outer.env)
    yield opened
    await opened.aclose()


@pytest.fixture
async def road(nested: Nested, tmp_path: Path) -> AsyncIterator[Road]:
    """The service on the inner desktop, with a terminal in front that writes down each key it gets."""
    computer = this_computer(nested.inner.env)
    keys = tmp_path / "keys"

    async def in_front() -> bool:
        # Its program may run before the window manager has the window.
        await computer.click(Point(x=200, y=200))
        front = await computer.windows.focused()
        return front is not None and front.app == "XTerm"

    script = f"stty raw -echo; echo ready > '{tmp_path}/ready'; exec cat > '{keys}'"
    terminal = nested.inner.launch("xterm", "-geometry", "80x20+100+100", "-e", "sh", "-c", script)
    try:
        async with Road.open(tmp_path, [computer_scope()], computer) as opened:
            await until(lambda: (tmp_path / "ready").exists() and keys.exists())
            await until_awaited(in_front)
            yield opened
    finally:
        nested.inner.end(terminal)
        await computer.aclose()


async def typing(road: Road, into: list[dict[str, Any]], length: int = MUCH) -> None:
    into.append(await road.call("desktop.type_text", scope="desk", input={"text": "a" * length}))


async def moves(hand: Computer) -> None:
    for step in range(6):
        await hand.pointer.move(Point(x=300 + 7 * step, y=400))


async def presses(hand: Computer) -> None:
    await hand.pointer.click(Point(x=900, y=700))


@pytest.mark.desktop
@pytest.mark.parametrize("does", [moves, presses])
async def test_a_hand_ends_the_act_under_way(
    road: Road, hand: Computer, tmp_path: Path, does: Callable[[Computer], Any]
) -> None:
    keys, queues = tmp_path / "keys", road.app.dispatcher.queues
    answers: list[dict[str, Any]] = []
    async with anyio.create_task_group() as group:
        group.start_soon(typing, road, answers)
        await until(lambda: keys.stat().st_size)
        await does(hand)
    assert answers[0]["error"]["code"] == "aborted", answers[0]
    assert answers[0]["error"]["details"]["person"] is True
    assert queues.is_paused and not queues.is_halted
    # The next act waits until the hand rests; it is the first thing that arrives after what was under way.
    await road.app.computer.click(Point(x=200, y=200))
    assert (await road.call("desktop.press", scope="desk", input={"key": "z"}))["ok"]
    assert not queues.is_paused
    await until(lambda: b"z" in keys.read_bytes())
    typed = keys.read_bytes()
    assert typed.endswith(b"z") and 0 < typed.count(b"a") < MUCH


@pytest.mark.desktop
async def test_our_own_act_is_not_taken_for_a_hand(road: Road, tmp_path: Path) -> None:
    answers: list[dict[str, Any]] = []
    await typing(road, answers, 400)
    assert answers[0]["ok"], answers
    await until(lambda: (tmp_path / "keys").stat().st_size == 400)
    assert not road.app.dispatcher.queues.is_paused


@pytest.mark.desktop
async def test_where_input_came_from_is_told(nested: Nested, hand: Computer) -> None:
    inner = this_computer(nested.inner.env)
    seen: set[tuple[str, str]] = set()
    try:
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                async for one in inner.facts.input():
                    seen.add((one.by, one.kind))

            group.start_soon(listen)
            with anyio.fail_after(30):
                while not {("program", "moved"), ("device", "moved"), ("device", "pressed")} <= seen:
                    await inner.pointer.move(Point(x=10, y=10))
                    await inner.pointer.move(Point(x=20, y=20))
                    await moves(hand)
                    await presses(hand)
            group.cancel_scope.cancel()
    finally:
        await inner.aclose()
    assert not any(by == "unknown" for by, _ in seen)


async def test_where_no_desktop_tells_the_answer_says_what_helps() -> None:
    with pytest.raises(UnsupportedPlatform):
        this_computer({}).facts.input()


async def test_a_client_of_a_simulated_desktop_gives_way_too(tmp_path: Path) -> None:
    computer = SimulatedComputer()
    window = computer.world.open("xterm")
    answers: list[dict[str, Any]] = []
    async with Road.open(tmp_path, [computer_scope()], computer) as road, anyio.create_task_group() as group:
        group.start_soon(typing, road, answers, 90_000)
        await until(lambda: window.text)
        computer.world.hand("keyboard", "pressed")
        await until(lambda: answers)
        assert answers[0]["error"]["details"] == {"person": True}
        assert len(window.text) < 90_000


@pytest.mark.desktop
async def test_on_wayland_a_hand_makes_the_next_act_wait(tmp_path: Path) -> None:
    """The compositor counts idle time and does not say whose input ended it: our own act must not count, a hand after it must."""
    if lacking := missing("sway"):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    with sway_desktop() as sway:
        sway.processes.append(start_bus(sway))
        computer, hand = this_computer(sway.env), this_computer(sway.env)
        try:
            async with Road.open(tmp_path, [computer_scope()], computer) as road:
                queues = road.app.dispatcher.queues
                for _ in range(3):
                    assert (await road.call("desktop.press", scope="desk", input={"key": "a"}))["ok"]
                assert not queues.is_paused, "what we did ourselves is nobody's hand"
                with anyio.fail_after(20):
                    while not queues.is_paused:
                        await hand.pointer.move(Point(x=100, y=100))
                        await hand.pointer.move(Point(x=200, y=200))
                paused = anyio.current_time()
                assert (await road.call("desktop.press", scope="desk", input={"key": "a"}))["ok"]
                assert anyio.current_time() - paused > 1.0
        finally:
            await hand.aclose()
            await computer.aclose()
