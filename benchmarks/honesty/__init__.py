"""Acts on applications of the distribution, judged by the applications' own records: does the service say what is true?

`make bench FAMILY=honesty` does all acts and prints the table. Applications that are not installed are named and left out.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from benchmarks.honesty import calculators, dialogs, editors, files, others, rigs, toolkits, widgets
from benchmarks.honesty.book import Act, Book, Figures, keep
from benchmarks.ratio import Ratio
from computer_linker.computer.local.probe import this_computer
from support.desktop import missing, x11_desktop
from support.road import Road, computer_scope

Scene = Callable[[Book], Awaitable[None]]
ALL: tuple[Scene, ...] = (
    calculators.galculator, calculators.gnome_calculator, editors.mousepad, editors.gedit, editors.l3afpad,
    editors.featherpad, dialogs.zenity, dialogs.yad, rigs.wx, rigs.qt, rigs.firefox, rigs.tk, files.thunar, files.pcmanfm,
    others.xterm, others.calc, toolkits.qt6, toolkits.gtk4, toolkits.swing, toolkits.chromium,
    widgets.widgets,
)  # fmt: skip


def run() -> list[Ratio]:
    """Do all acts (or those on the applications that HONESTY names), print the table, and return its figures."""
    if missing():
        print(f"not installed: {', '.join(missing())}")
        return []
    wanted = os.environ.get("HONESTY", "").split()
    share = float(os.environ.get("HONESTY_SHARE", "1"))
    chosen = [(scene, share) for scene in ALL if not wanted or scene.__name__ in wanted]
    with tempfile.TemporaryDirectory(prefix="honesty-") as folder:
        done = anyio.run(acted, Path(folder), chosen)
    if done.absent:
        print(f"not installed and left out: {', '.join(done.absent)}")
    for reason in done.broken:
        print(f"ended early: {reason}")
    if kept := os.environ.get("HONESTY_ACTS"):
        # So that applications can be run apart and judged together, with `python -m benchmarks.honesty.judged FILE...`.
        keep(Path(kept), done.acts)
    figures = Figures(done.acts)
    print(figures.table())
    # A figure whose bar is 0 becomes a ratio to 1: any fault is beyond reach.
    return [Ratio(name, figure, bar or 1, 1 if bar else 0, unit="") for name, figure, bar in figures.rows()]


@dataclass
class Run:
    """The acts of several scenes, and what kept others from being done."""

    acts: list[Act] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Programs that are not installed."""
    broken: list[str] = field(default_factory=list)
    """Scenes that ended early, with the reason."""


async def acted(folder: Path, scenes: Sequence[tuple[Scene, float]]) -> Run:
    """Do these shares of the scenes' acts, each on a desktop of its own: some leave windows and services behind."""
    run = Run()
    for scene, share in scenes:
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
                    run.broken.append(f"{scene.__name__}: {str(error)[:300]}")
        run.acts += book.acts
        run.absent += book.absent
        print(f"  {scene.__name__}: {len(book.acts)} acts", flush=True)
    return run
