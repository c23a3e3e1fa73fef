"""A real Wayland compositor, sway without a screen: what it allows works, and what it does not is said."""

import base64
import io
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest
from PIL import Image

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.local.probe import this_computer
from computer_linker.computer.text_entry import paste_text
from computer_linker.errors import InvalidRequest, LinkError, StaleReference, UnsupportedPlatform
from computer_linker.model.geometry import Point, Rect
from computer_linker.providers.shots import Frames
from support.desktop import Desktop, missing
from support.harness import Harness
from support.road import Road, computer_scope
from support.scene import until_no_windows
from support.sway import sway_desktop
from support.waiting import until_awaited

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]

PROGRAM = Path(__file__).parent.parent / "fixtures" / "apps" / "gtk3_log_window.py"
PLACE = Rect(x=100, y=100, width=500, height=400)
IN_TEXT = Point(x=300, y=460)
BLUE = (0x33, 0x66, 0x99)


@pytest.fixture(scope="module")
def sway() -> Iterator[Desktop]:
    if lacking := missing("sway"):
        pytest.skip(f"not installed: {lacking}")
    if subprocess.run(
        ["/usr/bin/python3", "-c", "import gi; gi.require_version('Gtk', '3.0')"], check=False
    ).returncode:
        pytest.skip("not installed: python3-gi, gir1.2-gtk-3.0")
    with sway_desktop(outputs=2) as desktop:
        yield desktop


@pytest.fixture
async def computer(sway: Desktop) -> AsyncIterator[Computer]:
    opened = this_computer(sway.env)
    yield opened
    await opened.aclose()


@pytest.fixture
async def window(sway: Desktop, computer: Computer) -> AsyncIterator[Harness]:
    """A GTK window at PLACE, with the pointer and the keyboard known to it."""
    process = sway.launch("/usr/bin/python3", "-W", "ignore", str(PROGRAM), "Log", stdout=subprocess.PIPE)
    harness = Harness(process)
    harness.next("ready")
    found = await until_awaited(lambda: computer.windows.list())
    harness.window = found[0].id
    assert (await computer.windows.place(harness.window, PLACE)).bounds == PLACE
    yield harness
    sway.end(process)
    await until_no_windows(computer)


async def test_displays_have_their_place_and_scale(computer: Computer) -> None:
    displays = await computer.screen.displays()
    assert [(one.bounds, one.pixel_width, one.scale) for one in displays] == [
        (Rect(x=0, y=0, width=1280, height=800), 1280, 1.0),
        (Rect(x=1280, y=0, width=800, height=600), 1600, 2.0),
    ]


async def test_a_click_in_a_captured_image_reaches_the_window(
    tmp_path: Path, computer: Computer, window: Harness
) -> None:
    async with Road.open(tmp_path, [computer_scope("desk")], computer) as road:
        frames = road.app.services.use(Frames)
        options = {"return": "base64", "maxWidth": 640}
        shot = await road.data("screen.capture", "HEADLESS-1", scope="desk", options=options)
        image = Image.open(io.BytesIO(base64.b64decode(shot["bytesBase64"]))).convert("RGB")
        assert image.size == (640, 400)
        assert image.getpixel((100, 100)) == BLUE
        place = await frames.locate(shot["frameId"], Point(x=100, y=100), scope="desk", computer=computer)
        await computer.click(place)
        up = window.next("button_up")
        assert (up["button"], up["x"], up["y"]) == (1, 100, 100)
        await computer.windows.place(window.window, PLACE.moved(50, 50))
        with pytest.raises(StaleReference):
            await frames.locate(shot["frameId"], Point(x=100, y=100), scope="desk", computer=computer)


async def test_a_window_on_the_scaled_display_is_captured_in_its_own_pixels(
    computer: Computer, window: Harness
) -> None:
    place = Rect(x=1400, y=100, width=400, height=300)
    assert (await computer.windows.place(window.window, place)).bounds == place
    with anyio.fail_after(60):
        while True:
            pixmap = await computer.screen.capture_window(window.window)
            at = 100 * pixmap.stride + 100 * 4
            if pixmap.data[at : at + 3] == bytes(reversed(BLUE)):
                break
    assert (pixmap.width, pixmap.height, pixmap.area) == (800, 600, place)
    await computer.click(Point(x=1500, y=150))
    assert window.next("button_up")["x"] == 100


async def test_any_text_is_typed_exactly(computer: Computer, window: Harness) -> None:
    text = "Hello, Zoë! 你好 мир 😀 €ß שלום ~`|<>? ABC xyz" * 10
    await computer.click(IN_TEXT)
    await computer.keyboard.type_text(text)
    assert window.next("text", timeout=30, text=text)


async def test_more_characters_than_a_keyboard_has_keys_are_typed_exactly(computer: Computer, window: Harness) -> None:
    text = "".join(chr(0x4E00 + number) + "aB"[number % 2] for number in range(300))
    await computer.click(IN_TEXT)
    await computer.keyboard.type_text(text)
    assert window.next("text", timeout=30, text=text)
    await computer.hotkey("ctrl", "a")
    await computer.press("delete")
    assert window.next("text", text="")


async def test_an_application_that_is_busy_meanwhile_gets_all_of_a_text(computer: Computer, window: Harness) -> None:
    # Sent one by one, the keys of 600 characters fill what a stopped application has room for, and sway cuts it off.
    text = "一aB丁" * 250
    await computer.click(IN_TEXT)
    await computer.keyboard.type_text("begun ")
    window.next("text", text="begun ")
    window.process.send_signal(signal.SIGSTOP)
    await computer.keyboard.type_text(text)
    window.process.send_signal(signal.SIGCONT)
    assert window.next("text", timeout=30, text="begun " + text)


async def test_chords_and_keys_act(computer: Computer, window: Harness) -> None:
    await computer.click(IN_TEXT)
    await computer.keyboard.type_text("one two")
    window.next("text", text="one two")
    await computer.hotkey("ctrl", "a")
    await computer.press("delete")
    window.next("text", text="")


async def test_modifiers_are_held_during_a_click_and_let_go_after(computer: Computer, window: Harness) -> None:
    await computer.pointer.click(Point(x=200, y=200), modifiers=["ctrl"])
    assert window.next("button_down")["ctrl"] is True
    await computer.click(Point(x=200, y=200))
    assert window.next("button_down")["ctrl"] is False


async def test_drag_and_wheel_reach_the_window(computer: Computer, window: Harness) -> None:
    await computer.drag(Point(x=150, y=150), Point(x=400, y=300))
    down, up = window.next("button_down"), window.next("button_up")
    assert (up["x"] - down["x"], up["y"] - down["y"]) == (250, 150)
    await computer.scroll(Point(x=200, y=200), dy=2)
    assert [window.next("scroll")["direction"] for _ in range(2)] == ["down", "down"]


async def test_a_paste_arrives_and_the_clipboard_comes_back(computer: Computer, window: Harness) -> None:
    await computer.click(IN_TEXT)
    await computer.clipboard_set_text("what the person copied")
    assert await paste_text(computer, "Pasted Ω") is True
    window.next("text", text="Pasted Ω")
    assert await computer.clipboard_text() == "what the person copied"


async def test_the_clipboard_holds_text_and_pictures_of_any_size(computer: Computer) -> None:
    large = "line é\n" * 100_000
    await computer.clipboard_set_text(large)
    assert await computer.clipboard_text() == large
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2000
    await computer.clipboard.write(Clip({"image/png": picture}))
    assert (await computer.clipboard.types(), await computer.clipboard.read("image/png")) == (["image/png"], picture)
    await computer.clipboard.write(Clip({}))
    assert await computer.clipboard.types() == []


async def test_windows_are_focused_and_closed(computer: Computer, window: Harness) -> None:
    assert (await computer.windows.focus(window.window)).is_focused
    assert await computer.windows.close(window.window)
    window.next("closing")
    for target in ("0", "999999", "1] kill; [con_id=2"):
        with pytest.raises(LinkError):
            await computer.windows.close(target)


async def test_what_wayland_does_not_offer_is_said(computer: Computer) -> None:
    with pytest.raises(UnsupportedPlatform):
        computer.screen.changes()
    with pytest.raises(UnsupportedPlatform):
        await computer.pointer.position()
    with pytest.raises(InvalidRequest):
        await computer.click(Point(x=1500, y=700))


async def test_a_compositor_that_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    computer = this_computer({"WAYLAND_DISPLAY": "wayland-77", "XDG_RUNTIME_DIR": str(tmp_path)})
    async with Road.open(tmp_path, [computer_scope("desk")], computer) as road:
        with anyio.fail_after(60):
            assert await road.code("screen.capture", "primary", scope="desk") == "provider_unavailable"
