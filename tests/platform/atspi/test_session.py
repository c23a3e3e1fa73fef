"""A whole session with each form, at two scales and on two monitors: every step agrees with the form's own journal."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from computer_linker.model.geometry import Window
from support.desktop import Desktop, missing, x11_desktop
from support.forms import TOOLKITS, Form, lacking, on_the_bus, open_form
from support.road import Road, computer_scope
from support.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]

_SCALED = {
    "gtk3": {"GDK_SCALE": "2"},
    "gtk4": {"GDK_SCALE": "2"},
    "qt6": {"QT_SCALE_FACTOR": "2"},
    "chromium": {},
}


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    """One wide screen that is two monitors side by side."""
    if lack := missing() + missing("xrandr"):
        pytest.skip(f"not installed: {', '.join(lack)}")
    with x11_desktop(tmp_path_factory.mktemp("wide"), size="3840x2160x24") as opened:
        opened.run("xrandr", "--setmonitor", "left", "1920/508x2160/571+0+0", "screen")
        opened.run("xrandr", "--setmonitor", "right", "1920/508x2160/571+1920+0", "none")
        yield opened


@pytest.fixture(
    scope="module",
    params=[(toolkit, scale) for scale in (1, 2) for toolkit in TOOLKITS],
    ids=lambda one: f"{one[0]}-x{one[1]}",
)
def form(request: pytest.FixtureRequest, desktop: Desktop) -> Iterator[Form]:
    """Each form at each scale."""
    toolkit, scale = request.param
    if lack := lacking(toolkit):
        pytest.skip(f"not installed: {lack}")
    env = _SCALED[toolkit] if scale == 2 else {}
    flags = ("--force-device-scale-factor=2",) if scale == 2 and toolkit == "chromium" else ()
    opened = open_form(desktop, toolkit, env=env, flags=flags)
    yield opened
    desktop.end(opened.process)


@pytest.fixture
async def session(tmp_path: Path, desktop: Desktop, form: Form) -> AsyncIterator[Session]:
    """The road, with the form's window on the right monitor."""
    computer = this_computer(desktop.env)
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as road:
        await on_the_bus(computer, form)
        window = await shown(computer, form)
        await computer.windows.place(window.id, window.bounds.moved(2000 - window.bounds.x, 100 - window.bounds.y))
        yield Session(road, form)


async def shown(computer: Computer, form: Form) -> Window:
    """The form's window, once the window manager has it."""
    with anyio.fail_after(10):
        while True:
            for one in await computer.windows.list():
                if form.title in one.title:
                    return one
            await anyio.sleep(0.05)


async def wait_for(session: Session, **condition: Any) -> dict[str, Any]:
    return await session.data("desktop.wait_until", {"app": session.form.app}, input={"condition": condition})


async def pick_from_the_menu(session: Session) -> None:
    role = "button" if session.form.toolkit == "gtk4" else "menuitem"
    await session.data("desktop.click", session.at(role, "File"))
    found = await wait_for(session, selectorExists={"role": "menuitem", "name": "Bump"})
    reply = await session.call("desktop.click", found["elements"][0]["ref"])
    assert reply["effect"] == "confirmed", reply
    await session.form.told("menu", lambda one: one["item"] == "Bump")


async def pick_from_the_combo_box(session: Session) -> None:
    if session.form.toolkit == "gtk4":
        # GTK 4.8 does not describe the list of this combo box: keys pick from it.
        toggle = (await session.find("combobox"))[0]
        await session.data("desktop.click", toggle["ref"])
        await session.data("desktop.press", input={"key": "down"})
        await session.data("desktop.press", input={"key": "enter"})
    else:
        await session.data("desktop.click", session.at("combobox"))
        found = await wait_for(session, selectorExists={"name": "two"})
        reply = await session.call("desktop.click", found["elements"][0]["ref"])
        assert reply["ok"], reply.get("error")
    await session.form.told("picked", lambda one: one["option"] == "two")


async def drag_on_the_pad(session: Session) -> None:
    shot = await session.data("screen.capture", "primary", options={"return": "base64"})
    pad = (await session.find(None, "pad"))[0]["bounds"]
    window = (await session.data("window.list"))["windows"][0]
    captured = await session.data("screen.capture_window", window["id"], options={"return": "base64"})
    area, across = captured["area"], captured["width"] / captured["area"]["width"]

    def at(dx: float, dy: float) -> dict[str, Any]:
        x, y = pad["x"] + pad["width"] * dx, pad["y"] + pad["height"] * dy
        return {"frameId": captured["frameId"], "x": (x - area["x"]) * across, "y": (y - area["y"]) * across}

    before = len(session.form.events("press"))
    reply = await session.call("desktop.drag", at(0.25, 0.25), input={"to": at(0.75, 0.75)})
    assert reply["ok"], reply
    release = await session.form.told("release")
    press = session.form.events("press")[-1]
    assert len(session.form.events("press")) == before + 1
    assert release["x"] - press["x"] > 10
    assert release["y"] - press["y"] > 5
    assert shot["frameId"] != captured["frameId"]


async def answer_the_dialog(session: Session) -> None:
    await session.data("desktop.click", session.at("button", "Ask me"))
    found = await wait_for(session, selectorExists={"role": "button", "name": "Refuse"})
    reply = await session.call("desktop.click", found["elements"][0]["ref"])
    assert reply["ok"], reply
    await session.form.told("dialog", lambda one: one["state"] == "refused")
    await wait_for(session, selectorGone={"role": "button", "name": "Refuse"})


async def test_a_session(session: Session) -> None:
    toolkit = session.form.toolkit
    for field in ("entry", "area"):
        text = f"{toolkit} {field} Zoë 你好 😀"
        reply = await session.call(
            "desktop.type_text", session.at("textbox", field), input={"text": text}, options={"clearBefore": True}
        )
        assert reply["effect"] == "confirmed", reply
        await session.form.told("text", lambda one, f=field, t=text: one["field"] == f and one["text"] == t)  # type: ignore[misc]
    if toolkit != "chromium":
        await pick_from_the_menu(session)
    await pick_from_the_combo_box(session)
    await drag_on_the_pad(session)
    reply = await session.call("desktop.click", session.at(None, "pad"), input={"button": "right", "count": 1})
    assert reply["ok"], reply
    await session.form.told("press", lambda one: str(one["button"]) in ("3", "2", "RightButton"))
    if toolkit == "chromium":
        await session.data("desktop.press", input={"key": "escape"})
    await answer_the_dialog(session)
    if toolkit != "chromium":
        await session.data("desktop.scroll", session.at("listitem", "item 2"), input={"delta": {"y": 3}})
    else:
        await session.data("desktop.scroll", session.at(None, "pad"), input={"delta": {"y": 3}})
    await session.form.told("scrolled")
    if toolkit == "chromium":
        await session.data(
            "desktop.scroll",
            {**session.at("document"), "selector": {"role": "document-web"}},
            input={"delta": {"y": -9}},
        )
        await session.form.told("scrolled", lambda one: one["to"] == 0)
    tree = await session.data("ui.tree", session.form.app, options={"maxDepth": 32})
    entry = next(one for one in tree["nodes"] if one["name"] == "entry" and one["role"] in ("text", "entry"))
    assert entry["value"] == f"{toolkit} entry Zoë 你好 😀"
