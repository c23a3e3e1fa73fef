"""Thunar (GTK 3) and pcmanfm (GTK 2, which describes nothing): judged by the file system and by xdotool."""

from functools import partial
from pathlib import Path

from benchmarks.honesty.book import Book, Fact, settles
from benchmarks.honesty.stage import lacks, running, window


async def thunar(book: Book) -> None:
    if lacks(book, "thunar"):
        return
    place = _folders(book, "thunar")
    with running(book, "Thunar", "thunar", str(place)) as process:
        wid = await window(book.desktop, place.name)
        # As a list: the icons of its icon view are not described.
        book.desktop.run("xdotool", "windowactivate", "--sync", wid, "key", "--clearmodifiers", "ctrl+2")
        await _created(book, place, wid, process.pid)
        await _opened(book, place, wid, process.pid)
        await _closed(book, wid, "thunar")


async def pcmanfm(book: Book) -> None:
    if lacks(book, "pcmanfm"):
        return
    place = _folders(book, "pcmanfm")
    with running(book, "pcmanfm", "pcmanfm", str(place), described=False):
        wid = await window(book.desktop, place.name)
        for number in book.times(8):
            wanted = f"neu {number} ß"
            book.desktop.run("xdotool", "windowactivate", "--sync", wid)
            keys = {"keys": ["ctrl", "shift", "n"]}
            await book.act("dialog", "live", partial(_titled, book, "Creat"), "desktop.hotkey", input=keys)
            typed = await book.road.call("desktop.type_text", scope="desk", input={"text": wanted})
            enter = {"key": "enter"}
            await book.act("create", "live", partial(_exists, place, wanted), "desktop.press", input=enter)
            fact: Fact = "happened" if (place / wanted).is_dir() else "elsewhere"
            book.note("name", "live", "desktop.type_text", fact, typed, typed["durationMs"] / 1000)
        await _closed(book, wid, "pcmanfm")


def _folders(book: Book, program: str) -> Path:
    place = book.folder / f"{program}-files"
    for number in range(3):
        (place / f"folder {number}").mkdir(parents=True)
    return place


async def _created(book: Book, place: Path, wid: str, pid: int) -> None:
    """New folders: the dialog's field is written and its button clicked; the file system shows the name."""
    route = {"pid": pid}
    for number in book.times(8):
        wanted = f"neu {number} ß"
        book.desktop.run("xdotool", "windowactivate", "--sync", wid, "key", "--clearmodifiers", "ctrl+shift+n")
        await book.until(route, role="button", name="Create")
        field = {"selector": {"role": "textbox", "states": ["focused"]}, "route": route}
        typed = await book.road.call(
            "desktop.type_text", field, scope="desk", input={"text": wanted}, options={"clearBefore": True}
        )
        create = {"selector": {"role": "button", "name": "Create"}, "route": route}
        await book.act("create", "live", partial(_exists, place, wanted), "desktop.click", create)
        fact: Fact = "happened" if (place / wanted).is_dir() else "elsewhere"
        book.note("name", "live", "desktop.type_text", fact, typed, typed["durationMs"] / 1000)


async def _exists(place: Path, name: str) -> Fact:
    return await settles(lambda: str((place / name).is_dir()), "False", "True")


async def _titled(book: Book, title: str) -> Fact:
    """Whether a window with this title is there."""

    def there() -> str:
        return str(bool(book.desktop.run("xdotool", "search", "--onlyvisible", "--name", title).stdout))

    return await settles(there, "False", "True")


async def _opened(book: Book, place: Path, wid: str, pid: int) -> None:
    """Double clicks on folders that follow other clicks; the window's title names the open folder."""

    def title() -> str:
        return book.desktop.run("xdotool", "getwindowname", wid).stdout.decode().strip()

    for number in book.times(8):
        name = f"folder {number % 3}"
        target = {"selector": {"role": "cell", "name": name}, "route": {"pid": pid}}
        await book.until({"pid": pid}, role="cell", name=name)
        await book.road.call("desktop.click", target, scope="desk")
        before = title()

        async def opened(before: str = before, name: str = name) -> Fact:
            fact = await settles(lambda: str(name in title()), "False", "True", 5)
            return fact if fact == "happened" or title() == before else "elsewhere"

        await book.act("double click", "live", opened, "desktop.click", target, input={"count": 2})
        book.desktop.run("xdotool", "windowactivate", "--sync", wid, "key", "--clearmodifiers", "alt+Up")
        await settles(lambda: str(place.name in title()), "False", "True", 5)


async def _closed(book: Book, wid: str, app: str) -> None:
    """app.close, judged by whether the X window is gone."""

    def gone() -> str:
        return str(book.desktop.run("xwininfo", "-id", wid).returncode != 0)

    await book.act("close", "live", lambda: settles(gone, "False", "True"), "app.close", app)
