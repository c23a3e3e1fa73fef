"""Eyes and hands on X11, against the usual tools in the same session: capture to PNG, and a click until it is seen."""

import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from benchmarks.ratio import Ratio

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

ROUNDS = 15


def run() -> list[Ratio]:
    """Nothing where no desktop can be started here."""
    from support.desktop import missing

    return [] if missing() or missing("xdotool", "xterm") else anyio.run(_measured)


async def _measured() -> list[Ratio]:
    from computer_linker.computer.local.probe import this_computer
    from support.desktop import x11_desktop

    folder = Path(tempfile.mkdtemp())
    with x11_desktop(folder, size="1920x1080x24") as desktop:
        computer = this_computer(desktop.env)
        try:
            _furnish(desktop)
            return [await _capture(computer, desktop.display), await _click(computer, desktop)]
        finally:
            await computer.aclose()


def _furnish(desktop) -> None:  # type: ignore[no-untyped-def]  # a test's class
    """Windows full of text, so that the picture is not an easy one."""
    from support.harness import Harness

    for number, place in enumerate(("+5+5", "+700+20", "+300+480", "+1000+420")):
        desktop.launch(
            "xterm", "-geometry", f"110x34{place}", "-fg", ("black", "green", "white", "blue")[number],
            "-bg", ("white", "black", "navy", "beige")[number], "-e", "sh", "-c", "ls -la /usr/bin | head -120; exec cat",
        )  # fmt: skip
    # A window of our own comes after them: once it is drawn, so are they.
    Harness.open(desktop, at=(1700, 900), size=(150, 100))
    for _ in range(40):
        if len(desktop.run("xdotool", "search", "--class", "XTerm").stdout.split()) >= 4:
            return
        time.sleep(0.1)


async def _capture(computer, display: str) -> Ratio:  # type: ignore[no-untyped-def]
    import mss
    from PIL import Image

    from computer_linker.providers.images import encode

    os.environ["DISPLAY"] = display
    grabber = mss.MSS()

    def usual() -> None:
        shot = grabber.grab(grabber.monitors[0])
        Image.frombytes("RGB", shot.size, shot.bgra, "raw", "BGRX").save(io.BytesIO(), "PNG", compress_level=1)

    ours, limit = [], []
    for _ in range(ROUNDS):
        limit.append(_timed(usual))
        started = time.perf_counter()
        encode(await computer.screen.capture())
        ours.append(time.perf_counter() - started)
    grabber.close()
    return Ratio(
        "1920x1080 capture to PNG, in process", statistics.median(ours), statistics.median(limit), 0.15,
        note="limit: mss grab and Pillow PNG level 1",
    )  # fmt: skip


async def _click(computer, desktop) -> Ratio:  # type: ignore[no-untyped-def]
    from computer_linker.model.geometry import Point
    from support.harness import Harness

    harness = Harness.open(desktop, at=(50, 700), size=(200, 200))
    harness.next("focus_in")
    ours, limit = [], []
    for number in range(ROUNDS):
        x, y = 100 + number, 800
        started = time.perf_counter()
        await computer.click(Point(x=x, y=y))
        harness.next("button_up")
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        subprocess.run(["xdotool", "mousemove", str(x), str(y + 10), "click", "1"], env=desktop.env, check=True)
        harness.next("button_up")
        limit.append(time.perf_counter() - started)
    return Ratio(
        "click to the event in the window",
        statistics.median(ours),
        statistics.median(limit),
        1.0,
        note="limit: xdotool",
    )


def _timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
