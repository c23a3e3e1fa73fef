"""zenity and yad (GTK 3): judged by what they print, and by a log that yad's buttons append to."""

import random
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.honesty.book import Book, Fact, Kind, settles
from benchmarks.honesty.stage import Log, at, lacks, running, window

_KEEP = "import subprocess,sys; open(sys.argv[1],'wb').write(subprocess.run(sys.argv[2:],stdout=-1).stdout or b'-')"


async def zenity(book: Book) -> None:
    if lacks(book, "zenity"):
        return
    for number in book.times(12):
        answer = book.folder / f"zenity{number}.txt"
        form = ["zenity", "--forms", f"--title=Form {number}", "--text=x", "--add-entry=First", "--add-entry=Second"]
        with running(book, "zenity", sys.executable, "-c", _KEEP, str(answer), *form):
            await _fill(book, number, answer)


async def _fill(book: Book, number: int, answer: Path) -> None:
    await window(book.desktop, f"Form {number}")
    fields = [one["ref"] for one in await book.shows("zenity", role="textbox")]
    texts = [f"first {number}", f"zweite {number} ß 你"]
    replies = [
        await book.road.call("desktop.type_text", ref, scope="desk", input={"text": one})
        for ref, one in zip(fields, texts, strict=True)
    ]
    await book.act("send", "live", partial(_printed, answer), "desktop.click", at("zenity", "OK"))
    # Which field comes first is the toolkit's affair.
    held = _answer(answer)
    for reply, one in zip(replies, texts, strict=True):
        _note_text(book, one in held, reply)


async def _printed(answer: Path) -> Fact:
    return await settles(lambda: str(bool(_answer(answer))), "False", "True")


def _answer(answer: Path) -> list[str]:
    """What the dialog printed when it ended."""
    return answer.read_text().strip().split("|") if answer.exists() and answer.read_text() else []


def _note_text(book: Book, is_there: bool, reply: dict[str, Any]) -> None:
    fact: Fact = "happened" if is_there else "elsewhere"
    book.note("text", "live", "desktop.type_text", fact, reply, reply["durationMs"] / 1000)


_BUTTONS = ("Alpha", "Beta", "Gamma", "Delta")
_CHECKS = tuple(f"Option {letter}" for letter in "ABCDEF")


async def yad(book: Book) -> None:
    if lacks(book, "yad"):
        return
    log, chance = Log(book.folder / "yad.log"), random.Random(22)
    log.path.write_text("")
    for number in book.times(6):
        answer = book.folder / f"yad{number}.txt"
        form = ["yad", "--form", f"--title=Yad form {number}", "--separator=|"]
        for name in _BUTTONS:
            form += [f"--field={name}:FBTN", f"sh -c 'echo {name} >> {log.path}'"]
        form += [f"--field={name}:CHK" for name in _CHECKS]
        form += ["--field=Line"]
        with running(book, "yad", sys.executable, "-c", _KEEP, str(answer), *form):
            await window(book.desktop, f"Yad form {number}")
            await book.shows("yad", role="button", name="Alpha")
            for _ in range(4):
                name = chance.choice(_BUTTONS)
                # The button runs a program, which nothing on the screen shows.
                await book.act("program", "silent", partial(log.judge, name), "desktop.click", at("yad", name))
            await _answered(book, number, answer, chance.sample(_CHECKS, 3))
    await _out_of_view(book, log, chance)


async def _out_of_view(book: Book, log: Log, chance: random.Random) -> None:
    """Buttons that must be scrolled to: half of them run a program that logs, half one that does nothing."""
    form = ["yad", "--form", "--scroll", "--height=240", "--width=300", "--title=Long form"]
    for number in range(30):
        form += [f"--field=Item {number}:FBTN", f"sh -c 'echo Item {number} >> {log.path}'" if number % 2 else "true"]
    with running(book, "yad", *form):
        await window(book.desktop, "Long form")
        await book.shows("yad", role="button", name="Item 0")
        for _ in book.times(12, 4):
            number = chance.randrange(30)
            kind: Kind = "silent" if number % 2 else "dead"
            wanted = f"Item {number}" if number % 2 else None
            await book.act(
                "out of view", kind, partial(log.judge, wanted), "desktop.click", at("yad", f"Item {number}")
            )


async def _answered(book: Book, number: int, answer: Path, chosen: list[str]) -> None:
    checked = {
        name: await book.road.call("desktop.click", at("yad", name, "checkbox"), scope="desk") for name in chosen
    }
    line = (await book.shows("yad", role="textbox"))[-1]["ref"]
    text = f"Zeile {number} ß"
    typed = await book.road.call("desktop.type_text", line, scope="desk", input={"text": text})
    await book.act("send", "live", partial(_printed, answer), "desktop.click", at("yad", "OK"))
    held = _answer(answer)
    ticked = {
        name
        for place, name in enumerate(_CHECKS)
        if held[len(_BUTTONS) + place : len(_BUTTONS) + place + 1] == ["TRUE"]
    }
    for name, reply in checked.items():
        fact: Fact = "nothing" if name not in ticked else "happened" if ticked <= set(chosen) else "elsewhere"
        book.note("check", "live", "desktop.click", fact, reply, reply["durationMs"] / 1000)
    _note_text(book, text in held, typed)
