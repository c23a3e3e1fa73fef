"""This run of the service: its address, and its shutdown."""

import asyncio
import getpass
import os
import time

from computer_linker.model.base import Model
from computer_linker.model.times import shown_s


class Lifetime:
    """One run. On shutdown the service finishes or stops cleanly what still runs."""

    def __init__(self) -> None:
        self.ending = asyncio.Event()
        self.local_url: str | None = None
        self.bound_url: str | None = None
        self.since = shown_s(time.time())

    def end(self) -> None:
        """Begin the shutdown; the caller still gets its answer."""
        self.ending.set()


# The user that the service runs as.


class UserContext(Model):
    """Who the service acts as; `elevated` is true for root or an administrator."""

    name: str
    elevated: bool


def this_user() -> UserContext:
    """The user of this process, as the system names it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        name = str(os.getuid()) if hasattr(os, "getuid") else ""
    return UserContext(name=name, elevated=_is_elevated())


def _is_elevated() -> bool:
    if hasattr(os, "geteuid"):
        return os.geteuid() == 0
    import ctypes

    windll = getattr(ctypes, "windll", None)
    return windll is not None and bool(windll.shell32.IsUserAnAdmin())
