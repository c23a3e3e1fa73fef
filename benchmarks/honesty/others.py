"""xterm, which describes nothing, judged by a file its shell writes; LibreOffice Calc, judged by the saved file."""

from functools import partial

from benchmarks.honesty.book import Book, Fact, settles
from benchmarks.honesty.stage import lacks, running, window
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
    file = book.folder / "sheet.csv"
    file.write_text("a,b,c\n1,2,3\n4,5,6\n")
    place = f"-env:UserInstallation=file://{book.folder / 'office'}"
    argv = ["soffice", place, "--norestore", "--nologo", "--nolockcheck", "--infilter=CSV:44,34,76,1", str(file)]
    with running(book, "LibreOffice Calc", *argv):
        wid = await window(book.desktop, "sheet.csv")
        await book.shows("soffice", role="cell", name="A1")
        book.desktop.run("xdotool", "windowactivate", "--sync", wid)
        cells = [list(line.split(",")) for line in file.read_text().splitlines()]
        for number in book.times(20):
            row, column = number % 3, (number // 3) % 3
            before = file.read_text()
            cells[row][column] = f"Zoë {number}" if number % 5 != 4 else ""
            wanted = "".join(",".join(line) + "\n" for line in cells)

            async def saved(before: str = before, wanted: str = wanted) -> Fact:
                book.desktop.run("xdotool", "windowactivate", "--sync", wid, "key", "--clearmodifiers", "ctrl+s")
                return await settles(file.read_text, before, wanted, 20)

            name = "ABC"[column] + str(row + 1)
            target = {"selector": {"role": "cell", "name": name}, "route": {"app": "soffice"}}
            await book.act(
                "cell", "live", partial(saved), "desktop.type_text", target,
                input={"text": cells[row][column]}, options={"clearBefore": True},
            )  # fmt: skip
