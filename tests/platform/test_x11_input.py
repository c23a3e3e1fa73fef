"""Input on a real X11 desktop, judged by what the window saw."""

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.facts import InputSeen
from computer_linker.model.geometry import Point
from support.desktop import Desktop
from support.harness import Harness

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]

SHIFT, LOCK, CONTROL, BUTTON1 = 1, 2, 4, 256
IN = Point(x=300, y=300)


async def test_modifiers_are_held_during_a_click_and_let_go_after(computer: Computer, harness: Harness) -> None:
    await computer.pointer.click(IN, modifiers=["ctrl", "shift"])
    assert harness.next("button_down")["state"] & (SHIFT | CONTROL) == SHIFT | CONTROL
    await computer.click(IN)
    assert harness.next("button_down")["state"] & (SHIFT | CONTROL) == 0


async def test_a_drag_moves_in_steps_with_the_button_held(computer: Computer, harness: Harness) -> None:
    await computer.drag(Point(x=200, y=250), Point(x=400, y=350))
    down, up = harness.next("button_down"), harness.next("button_up")
    assert (up["x"] - down["x"], up["y"] - down["y"]) == (200, 100)
    held = [one for one in harness.seen if one["event"] == "motion" and one["state"] & BUTTON1]
    assert len(held) >= 10


@pytest.mark.parametrize(("dx", "dy", "button"), [(0, 3, 5), (0, -2, 4), (2, 0, 7), (-1, 0, 6)])
async def test_the_wheel_turns_as_far_as_asked(
    computer: Computer, harness: Harness, dx: int, dy: int, button: int
) -> None:
    await computer.scroll(IN, dx=dx, dy=dy)
    assert [one["detail"] for one in harness.take("button_up", abs(dx + dy))] == [button] * abs(dx + dy)


async def test_a_chord_presses_in_order_and_releases_in_reverse(computer: Computer, harness: Harness) -> None:
    harness.next("focus_in")
    await computer.hotkey("ctrl", "shift", "t")
    names = {0xFFE3: "ctrl", 0xFFE1: "shift", ord("t"): "t", ord("T"): "t"}
    downs = [names[one["keysym"]] for one in harness.take("key_down", 3)]
    ups = [names.get(one["keysym"], "shift") for one in harness.take("key_up", 3)]
    assert (downs, ups) == (["ctrl", "shift", "t"], ["t", "shift", "ctrl"])


async def test_an_upper_level_character_in_a_chord_brings_its_shift(computer: Computer, harness: Harness) -> None:
    harness.next("focus_in")
    await computer.hotkey("ctrl", "+")
    assert harness.next("key_down", keysym=ord("+"))["state"] & (SHIFT | CONTROL) == SHIFT | CONTROL


async def test_caps_lock_does_not_change_what_is_typed(computer: Computer, harness: Harness, desktop: Desktop) -> None:
    harness.next("focus_in")
    desktop.run("xdotool", "key", "Caps_Lock")
    try:
        harness.next("key_up")
        await computer.keyboard.type_text("aB1")
        keys = [one for one in harness.take("key_down", 4) if one["keysym"] < 256]
        # With Caps Lock on, shift gives the small letter.
        assert [(bool(one["state"] & SHIFT), chr(one["keysym"]).lower()) for one in keys] == [
            (True, "a"), (False, "b"), (False, "1"),
        ]  # fmt: skip
    finally:
        desktop.run("xdotool", "key", "Caps_Lock")


async def test_another_layout_is_typed_by_its_own_keys(computer: Computer, harness: Harness, desktop: Desktop) -> None:
    harness.next("focus_in")
    assert desktop.run("setxkbmap", "de").returncode == 0
    try:
        assert await computer.keyboard.can_type("zyäöüß")
        await computer.keyboard.type_text("zyäöüß")
        assert [chr(one["keysym"]) for one in harness.take("key_down", 6)] == list("zyäöüß")
    finally:
        desktop.run("setxkbmap", "us")


async def test_a_cancelled_act_leaves_no_button_or_key_down(computer: Computer, harness: Harness) -> None:
    long_way = [Point(x=200 + step % 2 * 150, y=250) for step in range(200)]
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: computer.pointer.drag(long_way, modifiers=["shift"]))
        await anyio.to_thread.run_sync(harness.next, "button_down")
        group.cancel_scope.cancel()
    # The next act waits for the cut-off one to have ended, so what it sees is the state left behind.
    await computer.click(Point(x=320, y=320))
    harness.next("button_up", timeout=30)
    last = harness.next("button_down", timeout=30)
    assert last["state"] & (SHIFT | BUTTON1) == 0


async def test_two_hundred_clicks_all_arrive(computer: Computer, harness: Harness) -> None:
    for _ in range(200):
        await computer.click(IN)
    assert len(harness.take("button_up", 200)) == 200


async def test_input_is_told_without_which_key(computer: Computer, harness: Harness) -> None:
    seen: list[InputSeen] = []

    def is_complete() -> bool:
        return {(one.device, one.kind) for one in seen} >= {("keyboard", "pressed"), ("pointer", "pressed")}

    async def listen() -> None:
        async for event in computer.facts.input():
            seen.append(event)
            if is_complete():
                return

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            while not is_complete():
                await computer.click(IN)
                await computer.press("a")
                await anyio.sleep(0.02)  # the listener runs meanwhile; what comes before it listens is not heard
    assert {field for one in seen for field in one.to_wire()} == {"device", "kind", "by", "atMs"}
