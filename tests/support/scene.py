"""A desktop to try the facets on, simulated or real, behind one face: open a window, ask what reached it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from computer_linker.computer.base import Computer
from computer_linker.computer.local.probe import this_computer
from computer_linker.computer.simulated import SimulatedComputer, SimulatedWindow
from computer_linker.model.geometry import Rect
from support.desktop import Desktop, x11_desktop
from support.harness import Harness
from support.service import wait_for
from support.sway import sway_desktop, tell, window_ids
from support.waiting import until_awaited

_LOG_WINDOW = Path(__file__).parent.parent / "fixtures" / "apps" / "gtk3_log_window.py"


async def until_no_windows(computer: Computer) -> None:
    """Wait until the desktop is empty."""

    async def is_empty() -> bool:
        return not await computer.windows.list()

    await until_awaited(is_empty)


class Target(Protocol):
    """A window that knows what reached it."""

    @property
    def id(self) -> str: ...

    def clicks(self, count: int) -> list[dict[str, Any]]: ...

    def typed(self, text: str) -> str: ...


class Scene(Protocol):
    """A desktop with one display of 1280 x 800."""

    @property
    def computer(self) -> Computer: ...

    def window(self, title: str, bounds: Rect, colour: int = 0x336699) -> Target: ...


@dataclass
class SimulatedTarget:
    window: SimulatedWindow

    @property
    def id(self) -> str:
        return self.window.id

    def clicks(self, count: int) -> list[dict[str, Any]]:
        return [
            {"button": one["button"], "x": one["x"], "y": one["y"]}
            for one in self.window.log
            if one["event"] == "click"
        ][:count]

    def typed(self, text: str) -> str:
        return self.window.text


@dataclass
class SimulatedScene:
    computer: SimulatedComputer = field(default_factory=SimulatedComputer)

    def window(self, title: str, bounds: Rect, colour: int = 0x336699) -> SimulatedTarget:
        return SimulatedTarget(self.computer.world.open(title.lower(), title, bounds, colour))


_BUTTONS = {1: "left", 2: "middle", 3: "right", 8: "back", 9: "forward"}


@dataclass
class HarnessTarget:
    """A window of a process that tells what reached it."""

    harness: Harness

    @property
    def id(self) -> str:
        return self.harness.window

    def clicks(self, count: int) -> list[dict[str, Any]]:
        return [
            {"button": _BUTTONS[one.get("detail") or one["button"]], "x": one["x"], "y": one["y"]}
            for one in self.harness.take("button_up", count)
        ]


class X11Target(HarnessTarget):
    def typed(self, text: str) -> str:
        """As many characters as the text has, from the keys that reached the window."""
        found = ""
        while len(found) < len(text):
            keysym = self.harness.next("key_down")["keysym"]
            found += "\n" if keysym == 0xFF0D else chr(keysym) if keysym < 0x100 else ""
        return found


@dataclass
class X11Scene:
    desktop: Desktop
    computer: Computer

    def window(self, title: str, bounds: Rect, colour: int = 0x336699) -> X11Target:
        harness = Harness.open(
            self.desktop, title, at=(bounds.x, bounds.y), size=(bounds.width, bounds.height), colour=colour
        )
        harness.next("focus_in")
        return X11Target(harness)


@contextmanager
def x11_scene(folder: Path) -> Iterator[X11Scene]:
    """A new X11 session with a computer on it."""
    with x11_desktop(folder) as desktop:
        yield X11Scene(desktop, this_computer(desktop.env))


class SwayTarget(HarnessTarget):
    def typed(self, text: str) -> str:
        """The text of its field once it is as long as this one."""
        found: str = ""
        while len(found) < len(text):
            found = self.harness.next("text")["text"]
        return found


@dataclass
class SwayScene:
    """A compositor that shows only what is on the screen, tells of no changes, and whose keyboard has every character."""

    desktop: Desktop
    computer: Computer

    def window(self, title: str, bounds: Rect, colour: int = 0x336699) -> SwayTarget:
        before = set(window_ids(self.desktop, title))
        argv = ["/usr/bin/python3", "-W", "ignore", str(_LOG_WINDOW), title, f"{colour:06x}"]
        harness = Harness(self.desktop.launch(*argv, stdout=subprocess.PIPE))
        harness.next("ready")
        # The window is told to be there a moment before the compositor lists it.
        (harness.window,) = wait_for(lambda: set(window_ids(self.desktop, title)) - before, seconds=10)
        place = f"resize set {bounds.width} {bounds.height}, move absolute position {bounds.x} {bounds.y}"
        tell(self.desktop, f"[con_id={harness.window}] floating enable, border none, {place}")
        harness.next("placed", width=bounds.width, height=bounds.height)
        return SwayTarget(harness)


@contextmanager
def sway_scene() -> Iterator[SwayScene]:
    """A new sway session with one output and a computer on it."""
    with sway_desktop() as desktop:
        yield SwayScene(desktop, this_computer(desktop.env))
