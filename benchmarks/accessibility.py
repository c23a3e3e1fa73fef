"""Trees, text and waits on real toolkits, against the plain ways in the same session."""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from benchmarks.ratio import Ratio

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

ROUNDS = 5
WAITS = 3
PART = 100
"""xdotool gets only so many of the characters: it needs up to 20 ms for each."""
WIDTH = 64
TREE_REACH = {"chromium": 0.15, "gtk4": 0.15, "qt6": 0.6}
TEXT = ("Zoë Ünï 你好世界 Привет Ελλάδα עברית 😀🎉 " * 40)[:1000]


def run() -> list[Ratio]:
    """Nothing where no desktop can be started here."""
    from support.desktop import missing

    return [] if missing() or missing("xdotool") else anyio.run(_measured)


async def _measured() -> list[Ratio]:
    from computer_linker.computer.local.probe import this_computer
    from support.desktop import x11_desktop
    from support.forms import TOOLKITS, lacking, on_the_bus, open_form

    rows: list[Ratio] = []
    for toolkit in [one for one in TOOLKITS if not lacking(one)]:
        # A session each: xdotool changes the keyboard layout so often that the window manager is of no use after it.
        with x11_desktop(Path(tempfile.mkdtemp()), size="1920x1080x24") as desktop:
            form = open_form(desktop, toolkit)
            computer = this_computer(desktop.env)
            try:
                app = await on_the_bus(computer, form)
                if toolkit in TREE_REACH:
                    rows.append(await _tree(computer, desktop, form, app))
                rows.append(await _wait(computer, form))
                rows.append(await _text(computer, desktop, form))
            finally:
                await computer.aclose()
                desktop.end(form.process)
    return rows


async def _tree(computer: Any, desktop: Any, form: Any, app: Any) -> Ratio:
    ours: list[float] = []
    plain: list[float] = []
    walker = await _Plain.open(desktop.env["DBUS_SESSION_BUS_ADDRESS"])
    counted = await computer.accessibility.tree(app.root)
    for _ in range(ROUNDS):
        started = time.perf_counter()
        counted = await computer.accessibility.tree(app.root)
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        walked = await walker.walk(tuple(app.root))
        plain.append(time.perf_counter() - started)
    walker.bus.disconnect()
    note = f"{len(counted.elements)} nodes, {walked} by the plain walk"
    reach = TREE_REACH[form.toolkit]
    return Ratio(f"whole tree, {form.toolkit}", statistics.median(ours), statistics.median(plain), reach, note=note)


class _Unhurried:
    """A socket whose sends answer zero when it is full; without this, the library takes it for lost."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock

    def send(self, data: Any) -> int:
        try:
            return int(self._sock.send(data))
        except BlockingIOError:
            return 0


class _Plain:
    """Every node asked everything, 64 nodes at a time, with the library alone."""

    def __init__(self, bus: Any) -> None:
        self.bus = bus

    @classmethod
    async def open(cls, session_address: str) -> "_Plain":
        from dbus_fast import Message
        from dbus_fast.aio import MessageBus

        session = await MessageBus(bus_address=session_address).connect()
        name, path = "org.a11y.Bus", "/org/a11y/bus"
        reply = await session.call(Message(destination=name, path=path, interface=name, member="GetAddress"))
        assert reply is not None
        bus = await MessageBus(bus_address=reply.body[0]).connect()
        writer: Any = bus._writer
        writer.sock = _Unhurried(writer.sock)
        session.disconnect()
        return cls(bus)

    async def walk(self, root: tuple[str, str]) -> int:
        seen: set[tuple[str, str]] = set()
        turn = asyncio.Semaphore(WIDTH)

        async def visit(at: tuple[str, str]) -> None:
            if at in seen or at[1].endswith("/null"):
                return
            seen.add(at)
            async with turn:
                kids = await self._node(at)
            await asyncio.gather(*(visit(kid) for kid in kids))

        await visit(root)
        return len(seen)

    async def _node(self, at: tuple[str, str]) -> list[tuple[str, str]]:
        props = "org.freedesktop.DBus.Properties"
        item = "org.a11y.atspi.Accessible"
        *_rest, count = await asyncio.gather(
            self._call(at, props, "Get", "ss", [item, "Name"]),
            self._call(at, item, "GetRole"),
            self._call(at, item, "GetState"),
            self._call(at, item, "GetInterfaces"),
            self._call(at, "org.a11y.atspi.Component", "GetExtents", "u", [0]),
            self._call(at, props, "Get", "ss", [item, "ChildCount"]),
        )
        if count is None or not 0 < count.value <= 1000:
            return []
        return [tuple(kid) for kid in await self._call(at, item, "GetChildren") or []]

    async def _call(self, at: tuple[str, str], interface: str, member: str, signature: str = "", body: Any = ()) -> Any:
        from dbus_fast import Message, MessageType

        message = Message(
            destination=at[0], path=at[1], interface=interface, member=member, signature=signature, body=list(body)
        )
        reply = await self.bus.call(message)
        return None if reply is None or reply.message_type is MessageType.ERROR else reply.body[0]


async def _text(computer: Any, desktop: Any, form: Any) -> Ratio:
    from computer_linker.providers.refs import References

    aiming = _aiming(computer, References())
    ours: list[float] = []
    wrong = 0
    for _ in range(3):
        started = time.perf_counter()
        effect = await _write(aiming, form, TEXT)
        ours.append(time.perf_counter() - started)
        wrong += effect != "confirmed" or form.text("area") != TEXT
    seconds, others_wrong = await _xdotool(aiming, desktop, form)
    seconds *= len(TEXT) / PART
    note = f"1000 characters, {wrong} of 3 rounds wrong; xdotool got {others_wrong} of {PART} wrong, its time scaled up"
    taken = statistics.median(ours) if not wrong else float("inf")
    return Ratio(f"text entered and read back, {form.toolkit}", taken, seconds, 0.2, note=note)


def _aiming(computer: Any, references: Any) -> Any:
    from computer_linker.model.scope import Scope
    from computer_linker.providers.shots import Frames
    from computer_linker.providers.ui.aim import Aiming

    return Aiming(computer, Scope(id="bench", type="computer"), references, Frames())


async def _aim(aiming: Any, form: Any, role: str, name: str) -> Any:
    from computer_linker.providers.ui.aim import AimAt
    from computer_linker.providers.ui.route import Route
    from computer_linker.providers.ui.view import Selector

    return await aiming.take(AimAt(selector=Selector(role=role, name=name), route=Route(app=form.app)))


async def _write(aiming: Any, form: Any, text: str) -> str:
    from computer_linker.providers.ui.writing import write

    aim = await _aim(aiming, form, role="textbox", name="area")
    return str((await write(aiming, aim, text, clear=True)).effect)


async def _xdotool(aiming: Any, desktop: Any, form: Any) -> tuple[float, int]:
    """The time until the field holds still, and how many characters differ from what was asked for."""
    await _write(aiming, form, "")
    aim = await _aim(aiming, form, role="textbox", name="area")
    await aiming.give_focus(aim)
    seen = len(form.events("text"))
    started = time.perf_counter()
    await anyio.to_thread.run_sync(lambda: desktop.run("xdotool", "type", "--delay", "0", TEXT[:PART], timeout=30))
    last, quiet = time.perf_counter(), time.perf_counter()
    while time.perf_counter() - quiet < 0.5:
        await anyio.sleep(0.02)
        now = len(form.events("text"))
        if now != seen:
            seen, quiet = now, time.perf_counter()
            last = quiet
    got = form.text("area") or ""
    matching = sum(1 for one, other in zip(got, TEXT[:PART], strict=False) if one == other)
    return last - started, max(PART, len(got)) - matching


async def _wait(computer: Any, form: Any) -> Ratio:
    from computer_linker.model.scope import Scope
    from computer_linker.providers.refs import References
    from computer_linker.providers.ui.pointing import Click, click
    from computer_linker.providers.ui.restless import Restless
    from computer_linker.providers.ui.route import Route
    from computer_linker.providers.ui.waiting import Condition, Waiting
    from computer_linker.providers.ui.witness import Witness

    references, scope = References(), Scope(id="bench", type="computer")
    aiming = _aiming(computer, references)
    lags: list[float] = []
    for number in range(1, WAITS + 1):
        aim = await _aim(aiming, form, role="button", name="Later")
        await click(aiming, aim, Click(), Witness(computer, Restless(), None))
        condition = Condition(text_appears=f"Appeared {number}")
        await Waiting(computer, scope, references, Route(app=form.app), condition).until(10)
        ended = time.monotonic()
        while len(form.events("appeared")) < number:
            await anyio.sleep(0.005)
        lags.append(max(0.001, ended - form.events("appeared")[-1]["at"]))
    note = "after the application made it; the limit is what must be reached"
    return Ratio(f"wait_until, {form.toolkit}", statistics.median(lags), 0.05, 1.0, note=note)
