"""xterm, which describes nothing, judged by a file its shell writes; LibreOffice Calc, judged by the saved file."""

import random
from functools import partial
from pathlib import Path

from benchmarks.honesty.book import Book, Fact, settles
from benchmarks.honesty.stage import lacks, running, window
from support.sheets import is_whole, sheet_cells, sheet_document
from support.waiting import until

_TEXTS = ("plain words", "semi; colon & more", "quotes \"'`", "Zoë grüßt", "ÄÖÜ ñ", "Привет", "你好", "€ and ½")


async def xterm(book: Book) -> None:
    if lacks(book, "xterm"):
        return
    file = book.folder / "xterm.txt"
    argv = ["xterm", "-T", "term", "-u8", "-e", "sh", "-c", f"cat > '{file}'"]
    with running(book, "xterm", *argv, described=False):
        wid = await window(book.desktop, "term")
        await until(file.exists)
        written = ""
        for number in book.times(24, 3):
            text = _TEXTS[number % len(_TEXTS)]
            book.desktop.run("xdotool", "windowactivate", "--sync", wid)

            async def entered(text: str = text, before: str = written) -> Fact:
                # The shell's program gets the line with Enter, sent by a program of its own.
                book.desktop.run("xdotool", "key", "--clearmodifiers", "Return")
                return await settles(file.read_text, before, before + text + "\n")

            await book.act("text", "live", entered, "desktop.type_text", input={"text": text})
            written = file.read_text()


async def calc(book: Book) -> None:
    if lacks(book, "soffice"):
        return
    file = book.folder / "sheet.fods"
    cells = [[f"row {row} column {column}" for column in range(4)] for row in range(6)]
    file.write_text(sheet_document(cells))
    place = f"-env:UserInstallation=file://{book.folder / 'office'}"
    argv = ["soffice", place, "--norestore", "--nologo", "--nolockcheck", str(file)]
    with running(book, "LibreOffice Calc", *argv):
        wid = await window(book.desktop, "sheet.fods")
        await book.shows("soffice", role="cell", name="A1")
        chance = random.Random(24)
        for number in book.times(24):
            row, column = chance.randrange(6), chance.randrange(4)
            before = [list(line) for line in cells]
            # An empty cell is not emptied again: whether that happened could not be seen.
            cells[row][column] = f"Zoë {number}" if number % 4 != 3 or not cells[row][column] else ""
            target = {"selector": {"role": "cell", "name": f"{'ABCD'[column]}{row + 1}"}, "route": {"app": "soffice"}}
            await book.act(
                "cell", "live", partial(_saved, book, file, wid, before, cells), "desktop.type_text", target,
                input={"text": cells[row][column]}, options={"clearBefore": True},
            )  # fmt: skip
            cells = _padded(file)


async def _saved(book: Book, file: Path, wid: str, before: list[list[str]], wanted: list[list[str]]) -> Fact:
    """Save with the application's own shortcut; the file shows every cell."""
    book.desktop.run("xdotool", "windowactivate", "--sync", wid, "key", "--clearmodifiers", "ctrl+s")
    return await settles(lambda: str(_padded(file)), str(before), str(wanted), 15)


def _padded(file: Path) -> list[list[str]]:
    """Six rows of four cells; empty ones are not all in the file, or once for several."""
    if not is_whole(file):
        return []
    rows = [[*row, "", "", "", ""][:4] for row in sheet_cells(file, repeated=6)]
    return [*rows, *([[""] * 4] * 6)][:6]
