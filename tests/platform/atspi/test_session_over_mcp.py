"""A whole session with each form over MCP, a real service on a real desktop: every step agrees with the form's own journal.

On X11 at two scales and with two monitors, on sway on a plain and on a scaled output.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import pytest

from support.desktop import Desktop, missing, x11_desktop
from support.forms import TITLES, TOOLKITS, end_form, install_form, lacking
from support.road import computer_scope
from support.service import Http, serving
from support.session import McpRoad, Session
from support.sway import sway_desktop

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]

_SCALED = {
    "gtk3": {"GDK_SCALE": "2"},
    "gtk4": {"GDK_SCALE": "2"},
    "qt6": {"QT_SCALE_FACTOR": "2"},
    "chromium": {},
}
_OUTPUTS = """output HEADLESS-1 resolution 1600x1200 position 0 0
output HEADLESS-2 resolution 2400x2400 scale 2 position 1600 0
default_border none
default_floating_border none
for_window [title=".*"] floating enable
focus_follows_mouse no
xwayland disable
"""
_PLACES = {"x11-x1": (2000, 100), "x11-x2": (2000, 100), "sway-x1": (100, 50), "sway-x2": (1700, 50)}


@pytest.fixture(scope="module")
def wide_x11(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desktop, Http]]:
    """One wide screen that is two monitors side by side, and a service on it."""
    if lack := missing() + missing("xrandr"):
        pytest.skip(f"not installed: {', '.join(lack)}")
    folder = tmp_path_factory.mktemp("wide")
    with x11_desktop(folder, size="3840x2160x24") as opened:
        opened.run("xrandr", "--setmonitor", "left", "1920/508x2160/571+0+0", "screen")
        opened.run("xrandr", "--setmonitor", "right", "1920/508x2160/571+1920+0", "none")
        with (
            serving(folder / "service", env=opened.env, scopes=[computer_scope()]) as service,
            closing(service.http()) as http,
        ):
            yield opened, http


@pytest.fixture(scope="module")
def two_outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desktop, Http]]:
    """sway with a plain output and one of twice the pixels, and a service on it."""
    if lack := missing("sway", "dbus-daemon"):
        pytest.skip(f"not installed: {', '.join(lack)}")
    with (
        sway_desktop(2, with_bus=True, config=_OUTPUTS) as opened,
        serving(tmp_path_factory.mktemp("service"), env=opened.env, scopes=[computer_scope()]) as service,
        closing(service.http()) as http,
    ):
        yield opened, http


@pytest.fixture(
    params=[
        # On scaled displays the suite tries two toolkits, `make soak` all four.
        pytest.param(
            (toolkit, where), marks=[pytest.mark.soak] if where.endswith("x2") and toolkit in ("gtk3", "qt6") else []
        )
        for where in _PLACES
        for toolkit in TOOLKITS
    ],
    ids=lambda one: f"{one[1]}-{one[0]}",
)
async def session(request: pytest.FixtureRequest) -> AsyncIterator[Session]:
    """A form among the desktop's applications, not opened yet."""
    toolkit, where = request.param
    if lack := lacking(toolkit):
        pytest.skip(f"not installed: {lack}")
    on_x11 = where.startswith("x11")
    desktop, http = request.getfixturevalue("wide_x11" if on_x11 else "two_outputs")
    env = _SCALED[toolkit] if where == "x11-x2" else {}
    flags: tuple[str, ...] = () if on_x11 else ("--ozone-platform=wayland",)
    if where == "x11-x2":
        flags = ("--force-device-scale-factor=2",)
    form = install_form(desktop, toolkit, env=env, flags=flags if toolkit == "chromium" else ())
    yield Session(McpRoad(http), form, where)
    end_form(form)


async def open_the_form(session: Session) -> None:
    """Open it as an application, wait for its controls, and put it on the monitor meant for this session."""
    opened = await session.call("app.open", TITLES[session.form.toolkit])
    assert (opened["ok"], opened["effect"]) == (True, "confirmed"), opened
    await session.form.told("ready")
    await wait_for(session, selectorExists={"role": "textbox", "name": "entry"})
    await wait_for(session, windowTitle=session.form.title)
    window = await own_window(session)
    x, y = _PLACES[session.where]
    moved = await session.call("window.move", window["id"], input={"x": x, "y": y})
    assert (moved["ok"], moved["effect"]) == (True, "confirmed"), moved


async def own_window(session: Session) -> dict[str, Any]:
    """The form's window, as the window system has it."""
    windows = (await session.data("window.list"))["windows"]
    return next(one for one in windows if session.form.title in one["title"])


async def wait_for(session: Session, **condition: Any) -> dict[str, Any]:
    return await session.data(
        "desktop.wait_until", {"app": session.form.app}, input={"condition": condition}, options={"timeoutSeconds": 20}
    )


async def done(session: Session, op: str, target: Any = None, **parts: Any) -> dict[str, Any]:
    """An act that says it took effect."""
    reply = await session.call(op, target, **parts)
    assert (reply["ok"], reply.get("effect")) == (True, "confirmed"), reply
    return reply


async def fill_the_form(session: Session) -> None:
    for field in ("entry", "area"):
        text = f"{session.form.toolkit} {field} Zoë 你好 😀"
        at = session.at("textbox", field)
        await done(session, "desktop.type_text", at, input={"text": text}, options={"clearBefore": True})
        await session.form.told("text", lambda one, f=field, t=text: one["field"] == f and one["text"] == t)  # type: ignore[misc]


async def press_a_button(session: Session) -> None:
    (button,) = await session.find("button", "Press me")
    before = len(session.form.events("clicked"))
    await done(session, "desktop.click", button["ref"])
    await session.form.told("clicked")
    assert len(session.form.events("clicked")) == before + 1


async def pick_from_the_menu(session: Session) -> None:
    role = "button" if session.form.toolkit == "gtk4" else "menuitem"
    await session.data("desktop.click", session.at(role, "File"))
    found = await wait_for(session, selectorExists={"role": "menuitem", "name": "Bump"})
    await done(session, "desktop.click", found["elements"][0]["ref"])
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
        await session.data("desktop.click", found["elements"][0]["ref"])
    await session.form.told("picked", lambda one: one["option"] == "two")


async def drag_on_the_pad(session: Session) -> None:
    pad = (await session.find(None, "pad"))[0]["bounds"]
    captured = await session.data("screen.capture_window", (await own_window(session))["id"])
    assert [one["mimeType"] for one in session.road.images] == ["image/png"]
    area, across = captured["area"], captured["width"] / captured["area"]["width"]

    def at(dx: float, dy: float) -> dict[str, Any]:
        x, y = pad["x"] + pad["width"] * dx, pad["y"] + pad["height"] * dy
        return {"frameId": captured["frameId"], "x": (x - area["x"]) * across, "y": (y - area["y"]) * across}

    before = len(session.form.events("press"))
    await session.data("desktop.drag", at(0.25, 0.25), input={"to": at(0.75, 0.75)})
    release = await session.form.told("release")
    press = session.form.events("press")[-1]
    assert len(session.form.events("press")) == before + 1
    assert release["x"] - press["x"] > 10
    assert release["y"] - press["y"] > 5


async def click_with_the_right_button(session: Session) -> None:
    await session.data("desktop.click", session.at(None, "pad"), input={"button": "right", "count": 1})
    await session.form.told("press", lambda one: str(one["button"]) in ("3", "2", "RightButton"))
    if session.form.toolkit == "chromium":
        await session.data("desktop.press", input={"key": "escape"})


async def answer_the_dialog(session: Session) -> None:
    await session.data("desktop.click", session.at("button", "Ask me"))
    found = await wait_for(session, selectorExists={"role": "button", "name": "Refuse"})
    await session.data("desktop.click", found["elements"][0]["ref"])
    await session.form.told("dialog", lambda one: one["state"] == "refused")
    await wait_for(session, selectorGone={"role": "button", "name": "Refuse"})


async def scroll(session: Session, at: dict[str, Any], notches: int) -> None:
    """Turn the wheel; a dialog that is just closing may take the first turn, and then the answer says that nothing came."""
    for _ in range(3):
        before = len(session.form.events("scrolled"))
        reply = await session.call("desktop.scroll", at, input={"delta": {"y": notches}})
        assert reply["ok"], reply
        if reply["effect"] != "suspected_noop":
            await session.form.told("scrolled")
            return
        assert len(session.form.events("scrolled")) == before, reply
    raise AssertionError("the wheel did nothing three times")


async def scroll_and_back(session: Session) -> None:
    if session.form.toolkit != "chromium":
        await scroll(session, session.at("listitem", "item 2"), 3)
        return
    await scroll(session, session.at(None, "pad"), 3)
    await scroll(session, {**session.at("document"), "selector": {"role": "document-web"}}, -9)
    await session.form.told("scrolled", lambda one: one["to"] == 0)


async def read_the_form(session: Session) -> None:
    tree = await session.data("ui.tree", session.form.app, options={"maxDepth": 32})
    entry = next(one for one in tree["nodes"] if one["name"] == "entry" and one["role"] in ("text", "entry"))
    assert entry["value"] == f"{session.form.toolkit} entry Zoë 你好 😀"


async def history_agrees(session: Session) -> None:
    """What the history says was done is what the answers said."""
    asked = {one["operationId"]: one for one in session.road.done}
    told = await session.road.tool("get_operation_history", view="last", limit=200)
    events = {one["operationId"]: one for one in told["events"] if one["operationId"] in asked}
    assert set(events) == set(asked)
    for name, event in events.items():
        assert (event["op"], event["ok"], event["effect"]) == (
            asked[name]["op"],
            asked[name]["ok"],
            asked[name].get("effect"),
        )


async def test_a_session(session: Session) -> None:
    info = await session.road.tool("get_computer_info", include=["scopes", "tools"])
    (desk,) = info["scopes"]
    assert {"app.open", "desktop.type_text", "desktop.drag"} <= set(desk["allowedOperations"])
    await open_the_form(session)
    await fill_the_form(session)
    await press_a_button(session)
    if session.form.toolkit != "chromium":
        await pick_from_the_menu(session)
    await pick_from_the_combo_box(session)
    await drag_on_the_pad(session)
    await click_with_the_right_button(session)
    await answer_the_dialog(session)
    await scroll_and_back(session)
    await read_the_form(session)
    await history_agrees(session)
