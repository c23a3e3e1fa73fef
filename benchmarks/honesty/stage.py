"""Applications on the harness's desktop, and records of theirs that the service has no part in."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from benchmarks.honesty.book import Book, Fact
from support.desktop import Desktop, missing
from support.waiting import until, wait_for

PROGRAMS = Path(__file__).parent / "programs"


def lacks(book: Book, *programs: str) -> bool:
    """Whether one of these is not installed; the run then names it."""
    lack = missing(*programs)
    book.absent += lack
    return bool(lack)


@contextmanager
def running(
    book: Book, name: str, *argv: str, described: bool = True, **extra: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """An application whose acts are recorded under this name; it is ended by its process group."""
    book.app, book.is_described = name, described
    process = book.desktop.launch(*argv, **extra)
    try:
        yield process
    finally:
        book.desktop.end(process)


async def window(desktop: Desktop, title: str) -> str:
    """The X id of the visible window whose title contains this, by xdotool."""
    found = await until(lambda: desktop.run("xdotool", "search", "--onlyvisible", "--name", title).stdout.split())
    return found[-1].decode()


def copied(desktop: Desktop, window_id: str, *keys: str) -> str:
    """What an application copies to the clipboard when these keys are pressed in its window."""
    desktop.launch("sh", "-c", "printf ? | xclip -i -selection clipboard").wait(10)
    desktop.run("xdotool", "windowactivate", "--sync", window_id, "key", "--clearmodifiers", *keys)
    deadline = time.monotonic() + 3
    while (held := desktop.run("xclip", "-o", "-selection", "clipboard").stdout.decode().strip()) == "?":
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return held


def at(app: str, name: str, role: str = "button") -> dict[str, Any]:
    return {"selector": {"role": role, "name": name}, "route": {"app": app}}


@dataclass
class Log:
    """A file to which an application appends a line for each event it handles."""

    path: Path
    seen: int = 0

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    def mark(self) -> None:
        self.seen = len(self.lines())

    def new(self) -> list[str]:
        return self.lines()[self.seen :]

    async def judge(self, wanted: str | None, seconds: float = 10.0) -> Fact:
        """Whether exactly the wanted line came; without one, whether none came."""
        if wanted is not None:
            with anyio.move_on_after(seconds):
                await until(self.new)
        await anyio.sleep(0.15 if wanted is None else 0.03)
        came = self.new()
        self.mark()
        if not came:
            return "nothing"
        return "happened" if came == [wanted] else "elsewhere"

    def waits_for(self, line: str) -> None:
        wait_for(lambda: line in self.lines())
