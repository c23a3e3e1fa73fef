"""Displays, clipboard and sessions on a real X11 desktop, with other programs as witnesses."""

from pathlib import Path

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.clipboard import Clip
from computer_linker.computer.local.probe import this_computer
from computer_linker.computer.text_entry import Entered, paste_text
from computer_linker.errors import LinkError, StaleReference
from computer_linker.model.geometry import Point, Rect
from computer_linker.providers.shots import Frames
from support.desktop import Desktop, missing, stop, x11_desktop
from support.harness import Harness
from support.road import Road, computer_scope
from support.waiting import until, until_awaited

_LACK = missing("Xvfb", "openbox", "xrandr")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.desktop,
    pytest.mark.skipif(bool(_LACK), reason=f"not installed: {', '.join(_LACK)}"),
]


async def test_two_monitors_are_two_displays_and_each_can_be_captured(tmp_path: Path) -> None:
    with x11_desktop(tmp_path / "x", size="1920x1080x24", with_bus=False) as desktop:
        desktop.run("xrandr", "--setmonitor", "left", "960/254x1080/285+0+0", "screen")
        desktop.run("xrandr", "--setmonitor", "right", "960/254x1080/285+960+0", "none")
        window = Harness.open(desktop, at=(1200, 200), colour=0x112233)
        computer = this_computer(desktop.env)
        async with Road.open(tmp_path, [computer_scope("desk")], computer) as road:
            listed = await road.data("screen.list", scope="desk")
            places = {one["id"]: (one["bounds"]["x"], one["width"]) for one in listed["displays"]}
            assert places == {"left": (0, 960), "right": (960, 960)}
            frame = await road.data("screen.capture", "right", scope="desk", options={"maxWidth": 480})
            point = Point(x=(1300 - 960) / 2, y=300 / 2)
            place = await road.app.services.use(Frames).locate(frame["frameId"], point, scope="desk", computer=computer)
            await computer.click(place)
            assert window.next("button_up")["x"] == 1300 - 1201
            desktop.run("xrandr", "--delmonitor", "right")
            with pytest.raises(StaleReference):
                await road.app.services.use(Frames).locate(frame["frameId"], point, scope="desk", computer=computer)
        await computer.aclose()


async def test_the_text_scale_is_told(tmp_path: Path) -> None:
    with x11_desktop(tmp_path, with_bus=False, with_wm=False) as desktop:
        desktop.run("xrdb", "-merge", "-", input=b"Xft.dpi: 192\n")
        computer = this_computer(desktop.env)
        assert [display.scale for display in await computer.screen.displays()] == [2.0]
        await computer.aclose()


async def test_the_clipboard_is_shared_with_other_programs(computer: Computer, desktop: Desktop) -> None:
    await computer.clipboard_set_text("Zoë 你好 😀")
    given = desktop.run("xclip", "-o", "-selection", "clipboard", "-t", "UTF8_STRING").stdout
    assert given.decode() == "Zoë 你好 😀"
    large = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4000
    await computer.clipboard.write(Clip({"image/png": large}))
    assert desktop.run("xclip", "-o", "-selection", "clipboard", "-t", "image/png").stdout == large
    picture = desktop.folder / "picture.png"
    picture.write_bytes(large)
    desktop.launch("xclip", "-selection", "clipboard", "-t", "image/png", "-i", str(picture))

    async def offered() -> bool:
        types = await computer.clipboard.types()
        return types == ["image/png"] and await computer.clipboard.read("image/png") is not None

    await until_awaited(offered)
    assert await computer.clipboard.read("image/png") == large


async def test_a_paste_gives_the_clipboard_back(computer: Computer, harness: Harness, desktop: Desktop) -> None:
    harness.next("focus_in")
    before = Clip({"text/plain": b"what the person copied", "text/html": b"<b>rich</b>"})
    await computer.clipboard.write(before)
    # The harness does not fetch what is pasted, and that is told.
    assert await paste_text(computer, "pasted") is False
    assert await computer.clipboard.snapshot() == before


async def test_a_terminal_is_typed_into_and_never_pasted_into(computer: Computer, desktop: Desktop) -> None:
    typed = desktop.folder / "typed.txt"
    desktop.launch("xterm", "-e", "sh", "-c", f"head -n 1 > {typed}")

    async def in_front() -> bool:
        window = await computer.windows.focused()
        return window is not None and window.app == "XTerm"

    await until_awaited(in_front)
    text = "a long line for a terminal, with signs: $HOME `x` ~!@#% and nothing lost of it"
    assert await computer.type_text(text + "\n") == Entered("keys", "unverifiable")
    await until(lambda: typed.exists() and typed.read_text())
    assert typed.read_text() == text + "\n"


async def test_a_vanished_server_is_an_error_and_a_new_one_is_found(tmp_path: Path) -> None:
    with x11_desktop(tmp_path / "first", with_bus=False, with_wm=False) as desktop:
        computer = this_computer(desktop.env)
        await computer.screen.displays()
    with pytest.raises(LinkError) as caught:
        await computer.screen.capture()
    assert caught.value.code == "provider_unavailable"
    with pytest.raises(LinkError) as again:
        await computer.click(Point(x=1, y=1))
    assert again.value.code == "provider_unavailable"
    await computer.aclose()


@pytest.mark.parametrize("env", [{}, {"DISPLAY": ":4321"}, {"DISPLAY": "nonsense"}])
async def test_without_a_desktop_every_operation_says_so_at_once(tmp_path: Path, env: dict[str, str]) -> None:
    computer = this_computer(env)
    async with Road.open(tmp_path, [computer_scope("desk")], computer) as road:
        with anyio.fail_after(60):
            for op, target in (
                ("screen.capture", "primary"),
                ("screen.list", None),
                ("window.list", None),
                ("clipboard.read", None),
            ):
                code = await road.code(op, target, scope="desk")
                assert code in ("unsupported_platform", "provider_unavailable", "os_permission_required")


async def test_a_window_manager_that_died_is_no_hang(tmp_path: Path) -> None:
    with x11_desktop(tmp_path, with_bus=False, with_wm=False) as desktop:
        window = Harness.open(desktop, at=(10, 10))
        computer = this_computer(desktop.env)
        assert [one.id for one in await computer.windows.list()] == [window.window]
        with pytest.raises(LinkError) as caught:
            await computer.windows.focus(window.window)
        assert caught.value.code == "execution_failed"
        placed = await computer.windows.place(window.window, Rect(x=50, y=60, width=400, height=300))
        assert placed.bounds == Rect(x=10, y=10, width=400, height=300)
        stop(window.process)
        desktop.processes.remove(window.process)
        await computer.aclose()
