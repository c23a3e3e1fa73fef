"""galculator (GTK 3) and gnome-calculator (GTK 4), judged by what they copy to the clipboard."""

import os
import random
import signal
from functools import partial

from benchmarks.honesty.book import Book, Fact
from benchmarks.honesty.stage import at, copied, lacks, running, window


async def galculator(book: Book) -> None:
    if lacks(book, "galculator"):
        return
    desktop, chance = book.desktop, random.Random(20)
    with running(book, "galculator", "galculator") as process:
        await book.shows("galculator", role="toggle-button", name="7")
        wid = await window(desktop, "galculator")
        shown = partial(copied, desktop, wid, "ctrl+c")

        async def becomes(before: str, wanted: str | None) -> Fact:
            now = shown()
            return "happened" if now == wanted else "nothing" if now == before else "elsewhere"

        async def click(what: str, kind: str, name: str, before: str, wanted: str | None) -> None:
            target = at("galculator", name, "toggle-button")
            await book.act(what, kind, partial(becomes, before, wanted), "desktop.click", target)  # type: ignore[arg-type]

        for _ in book.times(18):
            held = "0"
            for _ in range(5):
                digit = chance.choice("123456789")
                wanted = digit if held == "0" else held + digit
                await click("digit", "live", digit, held, wanted)
                held = wanted
            await click("clear", "live", "AC", held, "0")
        for _ in book.times(6):
            digit = chance.choice("123456789")
            desktop.run("xdotool", "windowminimize", wid)
            await click("minimized", "live", digit, "0", digit)
            await click("clear", "live", "AC", digit, "0")
        for _ in book.times(6):
            await click("disabled", "refused", "MR", "0", None)
        os.kill(process.pid, signal.SIGSTOP)
        replies = [
            await book.road.call("desktop.click", at("galculator", "5", "toggle-button"), scope="desk")
            for _ in book.times(2)
        ]
        os.kill(process.pid, signal.SIGCONT)
        for reply in replies:
            book.note("frozen", "either", "desktop.click", await becomes("0", "5"), reply, 0.0)


async def gnome_calculator(book: Book) -> None:
    if lacks(book, "gnome-calculator"):
        return
    desktop, chance = book.desktop, random.Random(21)
    with running(book, "gnome-calculator", "gnome-calculator", env={"GSETTINGS_BACKEND": "memory"}):
        await book.shows("gnome-calculator", role="button", name="7")
        wid = await window(desktop, "Calculator")

        def shown() -> str:
            return copied(desktop, wid, "ctrl+a", "ctrl+c", "End").replace("?", "")

        async def becomes(before: str, wanted: str) -> Fact:
            now = shown()
            return "happened" if now == wanted else "nothing" if now == before else "elsewhere"

        async def click(what: str, name: str, before: str, wanted: str) -> None:
            await book.act(
                what, "live", partial(becomes, before, wanted), "desktop.click", at("gnome-calculator", name)
            )

        async def clear(held: str) -> None:
            await book.act("clear", "live", partial(becomes, held, ""), "desktop.press", input={"key": "escape"})

        for _ in book.times(12):
            held = ""
            for _ in range(5):
                digit = chance.choice("123456789")
                await click("digit", digit, held, held + digit)
                held += digit
            await clear(held)
        for _ in book.times(4):
            digit = chance.choice("123456789")
            desktop.run("xdotool", "windowminimize", wid)
            await click("minimized", digit, "", digit)
            await clear(digit)
