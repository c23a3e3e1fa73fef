"""This run of the service: its address, and its shutdown."""

import asyncio
import time

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
