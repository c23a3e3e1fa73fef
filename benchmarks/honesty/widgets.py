"""Menus, lists, tabs, fields, drags and traps in a window of Qt 6, which logs every event that it handles."""

import subprocess
from functools import partial
from typing import Any

import anyio

from benchmarks.honesty.book import Book, Fact, Kind
from benchmarks.honesty.rigs import SYSTEM_PYTHON, Rig, imports, new_log, tell
from benchmarks.honesty.stage import PROGRAMS, running, window
from support.waiting import until


async def widgets(book: Book) -> None:
    if not imports(book, "PyQt6.QtWidgets", "python3-pyqt6"):
        return
    log = new_log(book, "widgets")
    argv = [SYSTEM_PYTHON, str(PROGRAMS / "qt_widgets.py"), str(log.path)]
    with running(book, "Qt 6 widgets", *argv, stdin=subprocess.PIPE) as process:
        wid = await window(book.desktop, "widget rig")
        route = {"pid": process.pid}
        rig = Rig(book, log, partial(tell, process), wid, partial(_at, route, "button"), None, process.pid)
        await book.until(route, name="Alpha")
        for part in (_choices, _fields, _moved, _restless, _trapped, _seen):
            await part(rig, route)


def _at(route: dict[str, Any], role: str, name: str) -> dict[str, Any]:
    return {"selector": {"role": role, "name": name}, "route": route}


async def _choices(rig: Rig, route: dict[str, Any]) -> None:
    """Menus, a list of choices, tabs and rows."""
    book = rig.book
    for _ in book.times(4):
        await rig.click("button", "live", "Alpha")
    for number in book.times(4):
        kinds: tuple[tuple[str, Kind], ...] = (
            ("Entry live", "live"),
            ("Entry quiet", "live"),
            ("Entry off", "refused"),
        )
        for name, kind in kinds:
            await book.road.call("desktop.click", _at(route, "menuitem", "Things"), scope="desk")
            # An entry that is chosen closes its menu, whatever else it does.
            wanted = name if kind == "live" else None
            at = _at(route, "menuitem", name)
            await book.act(f"menu, {name}", kind, partial(rig.log.judge, wanted), "desktop.click", at)
            book.desktop.run("xdotool", "key", "Escape", "Escape")
        for name in ("Second", "Third", "First"):
            at = _at(route, "tab", name)
            await book.act("tab", "live", partial(rig.log.judge, f"tab {name}"), "desktop.click", at)
        row = (3 * number + 1) % 8
        at = _at(route, "listitem", f"Row {row}")
        await book.act("row", "live", partial(_last, rig, f"row {row}"), "desktop.click", at)


async def _last(rig: Rig, wanted: str, seconds: float = 5.0) -> Fact:
    """Judge by the last line: an act may go through several values on its way."""
    with anyio.move_on_after(seconds):
        await until(lambda: rig.log.new()[-1:] == [wanted])
    await anyio.sleep(0.1)
    came = rig.log.new()
    rig.log.mark()
    return "nothing" if not came else "happened" if came[-1] == wanted else "elsewhere"


async def _fields(rig: Rig, route: dict[str, Any]) -> None:
    """A date, a number, a wheel and a drag."""
    book = rig.book
    for number in book.times(4):
        selector = {"selector": {"role": "spinbutton"}}
        found = await book.road.data("desktop.find", route, scope="desk", input=selector)
        date, spin = [one["ref"] for one in found["elements"]]
        await book.act(
            "no date", "either", partial(rig.log.judge, None), "desktop.type_text", date,
            input={"text": "7"}, options={"clearBefore": True},
        )  # fmt: skip
        await book.act(
            "number", "live", partial(_read, rig, f"spin={10 + number}"), "desktop.type_text", spin,
            input={"text": str(10 + number)}, options={"clearBefore": True},
        )  # fmt: skip
        rows = {"selector": {"role": "list"}, "route": route}
        down = {"delta": {"x": 0, "y": 3}}
        await book.act("wheel", "live", partial(_last, rig, "scrolled"), "desktop.scroll", rows, input=down)
        up = {"delta": {"x": 0, "y": -20}}
        await book.act("wheel back", "live", partial(_last, rig, "scrolled"), "desktop.scroll", rows, input=up)
        await book.act("wheel at the end", "dead", partial(rig.log.judge, None), "desktop.scroll", rows, input=up)


async def _read(rig: Rig, wanted: str) -> Fact:
    rig.tell("read")
    return await _last(rig, wanted)


async def _moved(rig: Rig, route: dict[str, Any]) -> None:
    """Drags over a pad that logs them, and over a button, which does nothing."""
    book = rig.book
    for _ in book.times(4):
        frame = await book.road.data("screen.capture", scope="desk")
        start = {"frameId": frame["frameId"], "x": 320, "y": 480}
        to = {"frameId": frame["frameId"], "x": 450, "y": 500}
        await book.act("drag", "silent", partial(rig.log.judge, "pad dragged"), "desktop.drag", start, input={"to": to})
        at, other = rig.target("Dead"), rig.target("Late")
        await book.act("dead drag", "dead", partial(rig.log.judge, None), "desktop.drag", at, input={"to": other})


async def _restless(rig: Rig, _route: dict[str, Any]) -> None:
    """Labels that change by themselves, another each time, often and seldom."""
    for milliseconds in (700, 3000):
        await rig.command(f"tick {milliseconds}")
        for _ in rig.book.times(8, 2):
            await rig.click(f"labels every {milliseconds} ms, dead", "dead", "Dead")
        for _ in rig.book.times(3):
            await rig.click(f"labels every {milliseconds} ms, live", "live", "Alpha")
        await rig.command("still")


async def _trapped(rig: Rig, _route: dict[str, Any]) -> None:
    """A window that opens over the target, a layout that shifts and a window that moves while the click is under way."""
    book = rig.book
    for number in book.times(8, 2):
        await rig.command(f"pop {number * 20}")
        await rig.click("a window pops up", "either", "Alpha")
        await rig.command("unpop 0")
        await rig.command(f"swap {number * 20}")
        await rig.click("the layout shifts", "either", "Alpha")
        await rig.command("hop 0")
        await rig.click("the window moves", "either", "Alpha")
        await anyio.sleep(1)
    for _ in book.times(3):
        await rig.click("late effect", "either", "Late")
        await anyio.sleep(1.5)
        rig.log.mark()
        await rig.click("opens a window", "live", "Opens")
        await rig.command("unpop 0")


async def _seen(rig: Rig, _route: dict[str, Any]) -> None:
    """Points of a picture whose window moved, was covered, hidden or closed since."""
    book, desktop = rig.book, rig.book.desktop
    changes = (
        ("windowmove", rig.wid, "300", "200"), ("windowminimize", rig.wid), ("windowsize", rig.wid, "760", "560"),
    )  # fmt: skip
    for number in book.times(9, 3):
        desktop.run("xdotool", "windowactivate", "--sync", rig.wid, "windowmove", "--sync", rig.wid, "60", "80")
        desktop.run("xdotool", "windowsize", rig.wid, "700", "520")
        await anyio.sleep(0.3)
        found = await _place(book, rig)
        frame = await book.road.data("screen.capture", scope="desk")
        change = changes[number % 3]
        desktop.run("xdotool", *change)
        await anyio.sleep(0.3)
        point = {"frameId": frame["frameId"], "x": found["x"] + 20, "y": found["y"] + 15}
        kind: Kind = "either" if change[0] == "windowsize" else "refused"
        wanted = "Alpha" if kind == "either" else None
        await book.act(f"point, {change[0]}", kind, partial(rig.log.judge, wanted), "desktop.click", point)


async def _place(book: Book, rig: Rig) -> dict[str, int]:
    selector = {"selector": {"role": "button", "name": "Alpha"}}
    found = await book.road.data("desktop.find", {"pid": rig.pid}, scope="desk", input=selector)
    place: dict[str, int] = found["elements"][0]["bounds"]
    return place
