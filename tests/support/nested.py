"""A desktop inside another: what is made up on the outer one reaches the inner one as a person's own mouse and keyboard."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.desktop import Desktop, environment, line_of, start_bus, start_openbox, stop, tied, x11_desktop


@dataclass
class Nested:
    """`inner` is where clients act; `outer` is where the hand is."""

    inner: Desktop
    outer: Desktop


@contextmanager
def nested_desktop(folder: Path) -> Iterator[Nested]:
    """Xephyr, whose mouse and keyboard are devices of its own, fed by the display it is shown on."""
    with x11_desktop(folder / "outer", with_bus=False, with_wm=False) as outer:
        reader, writer = os.pipe()
        argv = ["Xephyr", "-displayfd", str(writer), "-screen", "1280x800", "-nolisten", "tcp", "-noreset"]
        server = subprocess.Popen(
            tied(argv), env=outer.env, pass_fds=[writer], start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        started = [server]
        try:
            os.close(writer)
            display = f":{line_of(reader, server).strip()}"
            os.close(reader)
            inner = Desktop(display, environment(display, folder / "inner"), folder / "inner")
            started += [start_bus(inner), start_openbox(inner)]
            try:
                yield Nested(inner, outer)
            finally:
                for process in reversed(inner.processes):
                    stop(process)
        finally:
            for process in reversed(started):
                stop(process)
