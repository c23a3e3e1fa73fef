"""Facts: what this machine and session are, and locking the session."""

from collections.abc import AsyncIterator
from typing import Literal, Protocol

from computer_linker.computer.facets.processes import Process
from computer_linker.model.base import Model


class Environment(Model):
    """The system and the desktop session, without names of people or secrets."""

    system: Literal["linux", "macos", "windows", "simulated"]
    release: str
    architecture: str
    session: Literal["x11", "wayland", "quartz", "win32", "simulated", "none"] = "none"
    desktop: str = ""
    locale: str = ""


class InputSeen(Model):
    """Something was pressed or moved at the machine. The key is never reported: it may belong to a password."""

    device: Literal["pointer", "keyboard"]
    kind: Literal["moved", "pressed", "released"]
    at_ms: int
    by: Literal["device", "program", "unknown"] = "unknown"
    """A physical device, synthetic input of a program (ours included), or not distinguishable here."""


class Facts(Protocol):
    """Questions about the session as a whole."""

    async def environment(self) -> Environment:
        """The system, its release and the kind of desktop session."""
        ...

    async def processes(self) -> list[Process]:
        """Every process of the computer that may be seen, by pid."""
        ...

    async def lock_screen(self) -> None:
        """Lock the session, where the system offers it."""
        ...

    def input(self) -> AsyncIterator[InputSeen]:
        """Subscribe: that input happened, for as long as it is iterated."""
        ...
