"""This run of the service: its address, and its shutdown."""

import asyncio
import getpass
import time

from computer_linker.model.base import Model
from computer_linker.model.times import shown_s
from computer_linker.system import is_elevated, os


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
        name = str(os.getuid())
    return UserContext(name=name, elevated=is_elevated())
