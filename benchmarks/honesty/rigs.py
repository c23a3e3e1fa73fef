"""One window in four toolkits: wxPython (GTK 3), Qt 5, a page in Firefox, and Tk, which describes nothing.

Each logs every event it handles, so that an act on anything but its target is seen. The targets are live, dead, disabled,
slow, silent, covered, minimized, re-created, frozen, beside a clock or an animation, and shared by two clients.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio

from benchmarks.honesty.book import Book, Fact, Kind
from benchmarks.honesty.stage import PROGRAMS, Log, lacks, running, window
from benchmarks.honesty.web import Page, serving
from support.road import LOCAL
from support.waiting import until

_NAMES = ("Alpha", "Beta", "Gamma", "Delta")
_OTHER = replace(LOCAL, id="local:other", session="session-2", connection="connection-2")
SYSTEM_PYTHON = "/usr/bin/python3"


@dataclass
class Rig:
    """One running window and how its controls are named to the service."""

    book: Book
    log: Log
    tell: Callable[[str], None]
    wid: str
    target: Callable[[str], Any]
    line: Any
    pid: int
    chance: random.Random = field(default_factory=lambda: random.Random(23))

    async def command(self, word: str) -> None:
        self.tell(word)
        await until(lambda: f"did {word}" in self.log.new())
        self.log.mark()

    async def click(self, what: str, kind: Kind, name: str, *, line: str | None = None, target: Any = None) -> None:
        wanted = None if kind in ("dead", "refused") else line or name
        at = self.target(name) if target is None else target
        await self.book.act(what, kind, partial(self.log.judge, wanted), "desktop.click", at)

    async def text(self, text: str, *, clear: bool) -> None:
        await self.book.act(
            "text", "live", partial(self.holds, text), "desktop.type_text", self.line,
            input={"text": text}, options={"clearBefore": clear},
        )  # fmt: skip

    async def holds(self, text: str) -> Fact:
        for _ in range(20):
            self.tell("read")
            fact = await self.log.judge(f"line={text}")
            if fact == "happened":
                return fact
            await anyio.sleep(0.1)
        return "elsewhere"


async def all_acts(rig: Rig) -> None:
    """Every situation that a window with accessibility can show."""
    book, chance = rig.book, rig.chance
    for _ in book.times(30, 3):
        await rig.click("button", "live", chance.choice(_NAMES))
    state = {1: False, 2: False, 3: False}
    for _ in book.times(12, 2):
        one = chance.choice((1, 2, 3))
        state[one] = not state[one]
        line = f"Check {one} {'on' if state[one] else 'off'}"
        await rig.click("check box", "live", f"Check {one}", line=line)
    for _ in book.times(5):
        await rig.click("silent", "silent", "Quiet")
    for _ in book.times(8):
        await rig.click("dead", "dead", "Dead")
    for _ in book.times(4):
        await rig.click("disabled", "refused", "Off")
    for _ in book.times(4):
        await rig.click("slow", "live", "Slow")
    for number in book.times(8, 2):
        await rig.text(f"Zoë {number} 你好", clear=True)
    await restless_acts(rig)
    await window_acts(rig)
    await shared_acts(rig)
    await frozen_acts(rig)


async def restless_acts(rig: Rig) -> None:
    """A clock, then an animation, beside the target."""
    for word in ("tick", "animate"):
        await rig.command(word)
        for _ in rig.book.times(4):
            await rig.click(f"{word}, live", "live", rig.chance.choice(_NAMES))
        for _ in rig.book.times(4):
            await rig.click(f"{word}, dead", "dead", "Dead")
        await rig.command("still")


async def window_acts(rig: Rig) -> None:
    """Covered, minimized and re-created targets."""
    book, desktop = rig.book, rig.book.desktop
    for _ in book.times(3):
        cover = desktop.launch("xterm", "-T", "cover", "-geometry", "90x35+40+40")
        await window(desktop, "cover")
        await rig.click("covered", "live", rig.chance.choice(_NAMES))
        desktop.end(cover)
    for _ in book.times(3):
        desktop.run("xdotool", "windowminimize", rig.wid)
        await rig.click("minimized", "live", rig.chance.choice(_NAMES))
    for _ in book.times(3):
        x, y = rig.chance.randrange(40, 400), rig.chance.randrange(40, 250)
        desktop.run("xdotool", "windowmove", rig.wid, str(x), str(y))
        await rig.click("moved", "live", rig.chance.choice(_NAMES))
    for _ in book.times(3):
        old = (await book.until(rig.target("Fresh")["route"], role="button", name="Fresh"))[0]["ref"]
        await rig.command("recreate")
        await rig.click("re-created, old ref", "either", "Fresh", target=old)
        await rig.click("re-created", "live", "Fresh")


async def shared_acts(rig: Rig) -> None:
    """Two clients at once: one clicks what is dead while the other clicks what is live."""
    for _ in rig.book.times(5):
        replies: dict[str, dict[str, Any]] = {}
        name = rig.chance.choice(_NAMES)

        async def client(one: str, principal: Any, replies: dict[str, dict[str, Any]] = replies) -> None:
            replies[one] = await rig.book.road.call("desktop.click", rig.target(one), scope="desk", principal=principal)

        async with anyio.create_task_group() as group:
            group.start_soon(client, "Dead", LOCAL)
            group.start_soon(client, name, _OTHER)
        fact = await rig.log.judge(name)
        rig.book.note(
            "two clients, live", "live", "desktop.click", fact, replies[name], replies[name]["durationMs"] / 1000
        )
        rig.book.note("two clients, dead", "dead", "desktop.click", "nothing", replies["Dead"], 0.0)


async def frozen_acts(rig: Rig) -> None:
    """A stopped process: what is said before it goes on must be true afterwards."""
    for _ in rig.book.times(2):
        os.kill(rig.pid, signal.SIGSTOP)
        began = time.monotonic()
        reply = await rig.book.road.call("desktop.click", rig.target("Alpha"), scope="desk")
        took = time.monotonic() - began
        os.kill(rig.pid, signal.SIGCONT)
        fact = await rig.log.judge("Alpha", 2.0)
        rig.book.note("frozen", "either", "desktop.click", fact, reply, took)


async def wx(book: Book) -> None:
    if imports(book, "wx", "python3-wxgtk4.0"):
        await native(book, "wxPython", "wx rig", SYSTEM_PYTHON, str(PROGRAMS / "wx_rig.py"))


async def qt(book: Book) -> None:
    if imports(book, "PyQt5.QtWidgets", "python3-pyqt5"):
        await native(book, "PyQt 5", "qt rig", SYSTEM_PYTHON, str(PROGRAMS / "qt_rig.py"))


def imports(book: Book, module: str, package: str) -> bool:
    """Whether the system's Python has this module; the run names the package otherwise."""
    found = subprocess.run([SYSTEM_PYTHON, "-c", f"import {module}"], capture_output=True, check=False)
    book.absent += [package] if found.returncode else []
    return found.returncode == 0


async def native(book: Book, name: str, title: str, *argv: str, last: Sequence[str] = (), **extra: Any) -> None:
    """All acts on a window that takes the log's path as an argument, and commands on its standard input."""
    log = new_log(book, name)
    with running(book, name, *argv, str(log.path), *last, stdin=subprocess.PIPE, **extra) as process:
        wid = await window(book.desktop, title)
        route = {"pid": process.pid}

        def target(control: str) -> dict[str, Any]:
            role = "checkbox" if control.startswith("Check") else "button"
            return {"selector": {"role": role, "name": control}, "route": route}

        line = {"selector": {"role": "textbox"}, "route": route}
        rig = Rig(book, log, partial(tell, process), wid, target, line, process.pid)
        await book.until(route, name="Alpha")
        await all_acts(rig)


async def firefox(book: Book) -> None:
    if lacks(book, "firefox-esr"):
        return
    log = new_log(book, "firefox")
    async with serving(PROGRAMS / "rig.html", log.path) as page:
        profile = book.folder / "firefox-profile"
        profile.mkdir()
        (profile / "user.js").write_text(_FIREFOX)
        argv = ["firefox-esr", "--no-remote", "--profile", str(profile), page.address]
        with running(book, "Firefox", *argv) as process:
            await in_browser(book, log, page, process)


_FIREFOX = "".join(
    f'user_pref("{name}", {value});\n'
    for name, value in (
        ("browser.shell.checkDefaultBrowser", "false"), ("browser.aboutwelcome.enabled", "false"),
        ("datareporting.policy.dataSubmissionEnabled", "false"), ("browser.tabs.warnOnClose", "false"),
        ("termsofuse.acceptedVersion", "999"), ("termsofuse.bypassNotification", "true"),
        ("toolkit.telemetry.reportingpolicy.firstRun", "false"), ("trailhead.firstrun.didSeeAboutWelcome", "true"),
    )
)  # fmt: skip


async def in_browser(book: Book, log: Log, page: Page, process: "subprocess.Popen[bytes]") -> None:
    wid = await window(book.desktop, "web rig")
    route = {"window": "web rig"}

    def target(control: str) -> dict[str, Any]:
        role = "checkbox" if control.startswith("Check") else "button"
        return {"selector": {"role": role, "name": control}, "route": route}

    line = {"selector": {"role": "textbox", "name": "Line"}, "route": route}
    await book.until(route, name="Alpha")
    await all_acts(Rig(book, log, page.tell, wid, target, line, process.pid))


async def tk(book: Book) -> None:
    if lacks(book, "wish"):
        return
    log = new_log(book, "tk")
    argv = ["wish", str(PROGRAMS / "tk_rig.tcl"), str(log.path)]
    with running(book, "Tk", *argv, described=False, stdin=subprocess.PIPE) as process:
        wid = await window(book.desktop, "tk rig")
        rig = Rig(book, log, partial(tell, process), wid, lambda name: None, None, process.pid)
        rig.tell("where")
        await until(lambda: "did where" in log.new())
        places = {parts[1]: [int(one) for one in parts[2:]] for line in log.new() if len(parts := line.split()) == 6}
        log.mark()
        await _tk_acts(rig, places)


async def _tk_acts(rig: Rig, places: dict[str, list[int]]) -> None:
    async def point(path: str) -> dict[str, Any]:
        frame = await rig.book.road.data("screen.capture", scope="desk")
        x, y, width, height = places[path]
        return {"frameId": frame["frameId"], "x": x + width // 2, "y": y + height // 2}

    for _ in rig.book.times(20, 2):
        name = rig.chance.choice(_NAMES)
        await rig.click("button", "live", name, target=await point(f".b{name.lower()}"))
    for name, what, kind in (("Quiet", "silent", "silent"), ("Dead", "dead", "dead"), ("Off", "disabled", "dead")):
        for _ in rig.book.times(4):
            await rig.click(what, kind, name, target=await point(f".b{name.lower()}"))  # type: ignore[arg-type]
    await rig.command("tick")
    for _ in rig.book.times(4):
        await rig.click("tick, live", "live", "Alpha", target=await point(".balpha"))
        await rig.click("tick, dead", "dead", "Dead", target=await point(".bdead"))
    await rig.command("still")
    for number in rig.book.times(6):
        await rig.command("clear")
        rig.line = await point(".line")
        await rig.text(f"text {number}", clear=False)


def new_log(book: Book, name: str) -> Log:
    log = Log(book.folder / f"{name}.log")
    log.path.write_text("")
    return log


def tell(process: "subprocess.Popen[bytes]", word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(word.encode() + b"\n")
    process.stdin.flush()
