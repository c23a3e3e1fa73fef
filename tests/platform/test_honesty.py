"""What the service says of acts on applications of the distribution, judged by the applications' own files and clipboard.

The table is printed (`pytest -s`). Nothing here asks the service what happened: galculator is asked by copying its display with
xdotool and xclip, mousepad by the file it saves, zenity by what it prints.
"""

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from computer_linker.computer.local.probe import this_computer
from support.desktop import Desktop, missing
from support.road import Road, computer_scope
from support.waiting import until, wait_for

pytestmark = [pytest.mark.anyio, pytest.mark.desktop, pytest.mark.timeout(240)]
NEEDS = ("galculator", "mousepad", "zenity", "xdotool", "xclip")
SEED = 20


@dataclass
class Act:
    """One act: whether it happened, and what was said of it."""

    kind: str
    happened: bool
    said: str
    seconds: float


@dataclass
class Book:
    """All acts of one run."""

    road: Road
    desktop: Desktop
    acts: list[Act] = field(default_factory=list)

    async def act(
        self, kind: str, happened: Callable[[], Awaitable[bool]], op: str, target: Any = None, **parts: Any
    ) -> dict[str, Any]:
        started = time.monotonic()
        reply = await self.road.call(op, target, scope="desk", **parts)
        took = time.monotonic() - started
        said = reply["effect"] if reply["ok"] else reply["error"]["code"]
        self.acts.append(Act(kind, await happened(), said, took))
        return reply

    def count(self, said: str, *, happened: bool) -> int:
        return sum(1 for act in self.acts if act.said == said and act.happened is happened)

    def table(self) -> str:
        rows = Counter((act.kind, "happened" if act.happened else "did not", act.said) for act in self.acts)
        lines = [f"{kind:<28} {fact:<9} {said:<16} {number:>3}" for (kind, fact, said), number in sorted(rows.items())]
        took = sorted(act.seconds for act in self.acts)
        return "\n".join(
            [*lines, f"{len(self.acts)} acts, median {took[len(took) // 2]:.2f} s, worst {took[-1]:.2f} s"]
        )


@pytest.fixture
async def book(tmp_path: Path, desktop: Desktop) -> AsyncIterator[Book]:
    if lack := missing(*NEEDS):
        pytest.skip(f"not installed: {', '.join(lack)}")
    computer = this_computer(desktop.env)
    await computer.accessibility.applications()
    async with Road.open(tmp_path, scopes=[computer_scope()], computer=computer) as road:
        yield Book(road, desktop)


def _window(desktop: Desktop, name: str) -> str:
    found = wait_for(lambda: desktop.run("xdotool", "search", "--onlyvisible", "--name", name).stdout.split())
    return found[-1].decode()


async def _shows(road: Road, app: str, **selector: str) -> list[dict[str, Any]]:
    condition = {"selectorExists": selector}
    found = await road.data(
        "desktop.wait_until", {"app": app}, scope="desk", input={"condition": condition}, options={"timeoutSeconds": 20}
    )
    elements: list[dict[str, Any]] = found["elements"]
    return elements


async def _galculator(book: Book) -> None:
    desktop, road = book.desktop, book.road
    process = desktop.launch("galculator")
    await _shows(road, "galculator", role="toggle-button", name="7")
    window = _window(desktop, "galculator")
    chance = random.Random(SEED)

    def display() -> str:
        desktop.launch("sh", "-c", "printf ? | xclip -i -selection clipboard").wait(10)
        desktop.run("xdotool", "windowactivate", "--sync", window, "key", "ctrl+c")
        deadline = time.monotonic() + 3
        while (held := desktop.run("xclip", "-o", "-selection", "clipboard").stdout.decode().strip()) == "?":
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)  # bounded above; a display that stays as it was is an answer too
        return held

    def at(name: str, role: str = "toggle-button") -> dict[str, Any]:
        return {"selector": {"role": role, "name": name}, "route": {"app": "galculator"}}

    async def becomes(wanted: str) -> bool:
        return display() == wanted

    for _ in range(3):
        shown = ""
        for _ in range(5):
            digit = chance.choice("123456789")
            shown += digit
            await book.act("galculator digit", partial(becomes, shown), "desktop.click", at(digit))
        await book.act("galculator clear", lambda: becomes("0"), "desktop.click", at("AC"))
    for digit in "24":
        desktop.run("xdotool", "windowminimize", window)
        await book.act("galculator minimized", partial(becomes, digit), "desktop.click", at(digit))
        await book.road.call("desktop.click", at("AC"), scope="desk")
    for _ in range(4):
        before = display()
        reply = await book.act("galculator disabled", partial(_not, becomes, before), "desktop.click", at("MR"))
        assert not reply["ok"]
    os.kill(process.pid, signal.SIGSTOP)
    ref = at("5")
    for _ in range(2):
        await book.act("galculator frozen", _never, "desktop.click", ref)
    os.kill(process.pid, signal.SIGCONT)
    assert display() == "0"
    desktop.end(process)


async def _never() -> bool:
    return False


async def _not(fact: Callable[[str], Awaitable[bool]], wanted: str) -> bool:
    return not await fact(wanted)


async def _mousepad(book: Book, tmp_path: Path) -> None:
    desktop, road = book.desktop, book.road
    file = tmp_path / "page.txt"
    file.write_text("")
    process = desktop.launch("mousepad", str(file), env={"GSETTINGS_BACKEND": "memory"})
    window = _window(desktop, "page.txt")
    area = (await _shows(road, "mousepad", role="text"))[-1]["ref"]

    async def saved(wanted: str) -> bool:
        desktop.run("xdotool", "windowactivate", "--sync", window, "key", "ctrl+s")
        with anyio.move_on_after(30):
            await until(lambda: file.read_text().rstrip("\n") == wanted.rstrip("\n"))
        return file.read_text().rstrip("\n") == wanted.rstrip("\n")

    text = ""
    for part in ("plain", " Zoë", " 你好", " Привет 😀", ' "; rm -rf', " end"):
        text += part
        await book.act("mousepad text", partial(saved, text), "desktop.type_text", area, input={"text": part})
    for _ in range(4):
        text = text[:-1]
        await book.act("mousepad key", partial(saved, text), "desktop.press", input={"key": "backspace"})
    for number in range(3):
        await book.act(
            "mousepad replace", partial(saved, f"new {number} é"), "desktop.type_text", area,
            input={"text": f"new {number} é"}, options={"clearBefore": True},
        )  # fmt: skip
    for _ in range(3):
        # Nothing to delete behind the last character: the key arrives and changes nothing.
        await book.act("mousepad dead key", _never, "desktop.press", input={"key": "delete"})
    desktop.end(process)


async def _zenity(book: Book, tmp_path: Path) -> None:
    desktop, road = book.desktop, book.road
    program = "import subprocess,sys; open(sys.argv[1],'wb').write(subprocess.run(sys.argv[2:],stdout=-1).stdout)"
    for number in range(5):
        answer = tmp_path / f"answer{number}.txt"
        form = ["zenity", "--forms", f"--title=Form {number}", "--text=x", "--add-entry=First", "--add-entry=Second"]
        desktop.launch(sys.executable, "-c", program, str(answer), *form)
        _window(desktop, f"Form {number}")
        fields = [one["ref"] for one in await _shows(road, "zenity", role="textbox")]

        async def told(wanted: str, answer: Path = answer) -> bool:
            with anyio.move_on_after(30):
                await until(lambda: answer.exists() and answer.read_text())
            # Which field comes first is the toolkit's affair.
            return answer.exists() and sorted(answer.read_text().strip().split("|")) == sorted(wanted.split("|"))

        texts = [f"first {number}", f"zweite {number} ß 你"]
        replies = [
            await road.call("desktop.type_text", ref, scope="desk", input={"text": one})
            for ref, one in zip(fields, texts, strict=True)
        ]
        ok = {"selector": {"role": "button", "name": "OK"}, "route": {"app": "zenity"}}
        await book.act("zenity send", partial(told, "|".join(texts)), "desktop.click", ok)
        held = answer.read_text().strip().split("|")
        book.acts += [
            Act("zenity text", one in held, reply.get("effect", "error"), reply["durationMs"] / 1000)
            for reply, one in zip(replies, texts, strict=True)
        ]


async def test_what_is_said_of_acts_is_true(book: Book, tmp_path: Path) -> None:
    await _galculator(book)
    await _mousepad(book, tmp_path)
    await _zenity(book, tmp_path)
    table = book.table()
    print("\n" + table)
    assert len(book.acts) >= 55, table
    assert book.count("confirmed", happened=False) == 0, table
    assert book.count("suspected_noop", happened=True) == 0, table
    assert [act for act in book.acts if act.said in ("conflict", "timeout") and act.happened] == [], table
    live = [act for act in book.acts if not act.kind.endswith(("disabled", "frozen", "dead key"))]
    assert [act for act in live if not act.happened] == [], table
    assert sum(act.said == "unverifiable" for act in live) <= len(live) * 0.05, table
