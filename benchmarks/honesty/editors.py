"""Text editors, judged by the file each saves: mousepad, gedit and l3afpad (GTK 3), featherpad (Qt 5)."""

import os
import signal
from functools import partial
from pathlib import Path

from benchmarks.honesty.book import Book, Fact, settles
from benchmarks.honesty.stage import lacks, running, window

_PARTS = ("plain", " Zoë", " 你好", " Привет", ' "; rm -rf', " tab", " ẞ€", " ok 😀", " $HOME", " `x`")


async def mousepad(book: Book) -> None:
    await _editor(book, "mousepad", {"GSETTINGS_BACKEND": "memory"})


async def gedit(book: Book) -> None:
    await _editor(book, "gedit", {"GSETTINGS_BACKEND": "memory"})


async def l3afpad(book: Book) -> None:
    await _editor(book, "l3afpad", {})


async def featherpad(book: Book) -> None:
    settings = Path(book.desktop.env["HOME"]) / ".config/featherpad/fp.conf"
    settings.parent.mkdir(parents=True)
    # It would put a line break behind the text at every save.
    settings.write_text("[text]\nappendEmptyLine=false\n")
    await _editor(book, "featherpad", {})


async def _editor(book: Book, program: str, env: dict[str, str]) -> None:
    if lacks(book, program):
        return
    file = book.folder / f"{program}.txt"
    file.write_text("")
    with running(book, program, program, str(file), env=env) as process:
        wid = await window(book.desktop, file.name)
        await book.shows(program, role="textbox", states=["focused"])
        page = _Page(book, file, wid)
        await page.texts(program)
        await page.keys(program)
        await page.frozen(process.pid, program)


class _Page:
    """The open document and the file it is saved to."""

    def __init__(self, book: Book, file: Path, wid: str) -> None:
        self.book, self.file, self.wid, self.text = book, file, wid, ""

    async def saved(self, before: str, wanted: str | None) -> Fact:
        self.book.desktop.run("xdotool", "windowactivate", "--sync", self.wid, "key", "--clearmodifiers", "ctrl+s")
        return await settles(lambda: self.file.read_text().rstrip("\n"), before, wanted)

    async def texts(self, program: str) -> None:
        area = (await self.book.shows(program, role="textbox", states=["focused"]))[-1]["ref"]
        for number in self.book.times(30, 4):
            part = _PARTS[number % len(_PARTS)]
            if number % 10 == 4:
                await self._type("replace", f"new {number} é", area, f"new {number} é", clear=True)
            else:
                await self._type("text", part, area, self.text + part)

    async def _type(self, what: str, part: str, area: str | None, wanted: str, *, clear: bool = False) -> None:
        await self.book.act(
            what, "live", partial(self.saved, self.text, wanted.rstrip("\n")), "desktop.type_text", area,
            input={"text": part}, options={"clearBefore": clear},
        )  # fmt: skip
        self.text = wanted

    async def keys(self, program: str) -> None:
        area = (await self.book.shows(program, role="textbox", states=["focused"]))[-1]["ref"]
        await self._type("replace", text := "enough text to delete from", area, text, clear=True)
        for _ in self.book.times(10, 2):
            wanted = self.text[:-1].rstrip("\n")
            await self.book.act(
                "key", "live", partial(self.saved, self.text, wanted), "desktop.press", input={"key": "backspace"}
            )
            self.text = wanted
        for _ in self.book.times(4):
            # Nothing lies behind the last character: the key arrives and changes nothing.
            await self.book.act(
                "dead key", "dead", partial(self.saved, self.text, None), "desktop.press", input={"key": "delete"}
            )
        for number in self.book.times(4):
            await self._copy(number)
        for _ in self.book.times(4):
            self.book.desktop.run("xdotool", "windowminimize", self.wid)
            area = None
            reply = await self.book.road.call("desktop.press", area, scope="desk", input={"key": "x"})
            self.book.note(
                "minimized", "either", "desktop.press", await self.saved(self.text, self.text + "x"), reply, 0
            )
            if self.file.read_text().rstrip("\n") != self.text:
                self.text += "x"

    async def _copy(self, number: int) -> None:
        """Copy the whole text, which nothing on the screen shows; xclip reads what was copied."""
        desktop = self.book.desktop
        desktop.launch("sh", "-c", f"printf 'held {number}' | xclip -i -selection clipboard").wait(10)
        desktop.run("xdotool", "windowactivate", "--sync", self.wid, "key", "--clearmodifiers", "ctrl+a")

        def held() -> str:
            return desktop.run("xclip", "-o", "-selection", "clipboard").stdout.decode()

        oracle = partial(settles, held, f"held {number}", self.text)
        await self.book.act("copy", "silent", oracle, "desktop.hotkey", input={"keys": ["ctrl", "c"]})
        desktop.run("xdotool", "windowactivate", "--sync", self.wid, "key", "--clearmodifiers", "Right")

    async def frozen(self, pid: int, program: str) -> None:
        area = (await self.book.shows(program, role="textbox", states=["focused"]))[-1]["ref"]
        os.kill(pid, signal.SIGSTOP)
        reply = await self.book.road.call("desktop.type_text", area, scope="desk", input={"text": "frozen"})
        os.kill(pid, signal.SIGCONT)
        fact = await self.saved(self.text, self.text + "frozen")
        self.book.note("frozen", "either", "desktop.type_text", fact, reply, 0.0)
