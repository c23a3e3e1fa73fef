"""Acts on applications of the distribution, judged by the applications' own records: does the service say what is true?

`make bench FAMILY=honesty` does all acts and prints the table. Applications that are not installed are named and left out.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from benchmarks.honesty import calculators, dialogs, editors, files, others, rigs
from benchmarks.honesty.book import Book, Figures
from benchmarks.ratio import Ratio
from computer_linker.computer.local.probe import this_computer
from support.desktop import missing, x11_desktop
from support.road import Road, computer_scope

Scene = Callable[[Book], Awaitable[None]]
ALL: tuple[Scene, ...] = (
    calculators.galculator, calculators.gnome_calculator, editors.mousepad, editors.gedit, editors.l3afpad,
    editors.featherpad, dialogs.zenity, dialogs.yad, rigs.wx, rigs.qt, rigs.firefox, rigs.tk, files.thunar, files.pcmanfm,
    others.xterm, others.calc,
)  # fmt: skip


def run() -> list[Ratio]:
    """Do all acts (or those on the applications that HONESTY names), print the table, and return its figures."""
    if missing():
        print(f"not installed: {', '.join(missing())}")
        return []
    wanted = os.environ.get("HONESTY", "").split()
    chosen = [scene for scene in ALL if not wanted or scene.__name__ in wanted]
    with tempfile.TemporaryDirectory(prefix="honesty-") as folder:
        book = anyio.run(acted, Path(folder), chosen, float(os.environ.get("HONESTY_SHARE", "1")))
    if book.absent:
        print(f"not installed and left out: {', '.join(book.absent)}")
    figures = Figures(book.acts)
    print(figures.table())
    # A figure whose bar is 0 becomes a ratio to 1: any fault is beyond reach.
    return [Ratio(name, figure, bar or 1, 1 if bar else 0, unit="") for name, figure, bar in figures.rows()]


async def acted(folder: Path, scenes: Sequence[Scene], share: float) -> Book:
    """Do the acts of these scenes, each on a desktop of its own, since some leave windows and services behind."""
    acts, absent = [], []
    for scene in scenes:
        place = folder / scene.__name__
        place.mkdir()
        with x11_desktop(place / "x11") as desktop:
            computer = this_computer(desktop.env)
            await computer.accessibility.applications()
            async with Road.open(place, scopes=[computer_scope()], computer=computer) as road:
                book = Book(road, desktop, place, share)
                try:
                    await scene(book)
                except (AssertionError, subprocess.SubprocessError) as error:
                    book.absent.append(f"the rest of {scene.__name__} ({str(error)[:300]})")
            acts += book.acts
            absent += book.absent
            print(f"  {scene.__name__}: {len(book.acts)} acts", flush=True)
    whole = Book(road, desktop, folder, share)
    whole.acts, whole.absent = acts, absent
    return whole
