"""Ends the command that fills the disk of the state folder, before nothing can be recorded any more.

The kernel has no quota for a folder or a command. So the free space is looked at while commands run, and when little is left the
command that wrote most since the last look is ended.
"""

import asyncio
import logging
from pathlib import Path
from typing import Self

from computer_linker.computer.facets.processes import Measured
from computer_linker.services import Services
from computer_linker.system import os

log = logging.getLogger(__name__)
_EVERY_S, _NEAR_S = 0.25, 0.05
_LEAST, _SHARE = 128 << 20, 16
"""What is kept free: this many bytes, or of a small disk a sixteenth."""
_NEAR = 1 << 30
"""With less than this above it, commands are measured at every look: a fast disk takes gigabytes in a second."""
_NOTHING = 256 << 10
"""A command that wrote less since the last look does not fill the disk, nor is one filled that lost less."""
Written = tuple[int, int]


class DiskWatch:
    """Looks at the free space while commands run."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._held: dict[Measured, Written] = {}
        """With what each had written at the last look."""
        self._free = 0
        """At the last look."""
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls(services.home)

    def hold(self, child: Measured) -> None:
        """Watch a command until it ends."""
        self._held[child] = (0, 0)
        child.when_ended(lambda _ended: self._forget(child))
        self._look_later(_EVERY_S)

    async def aclose(self) -> None:
        self._held.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _forget(self, child: Measured) -> None:
        self._held.pop(child, None)
        if not self._held and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self, seconds: float) -> None:
        if self._timer is None and self._held:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        try:
            disk = os.statvfs(self._home)
        except OSError:
            self._look_later(_EVERY_S)
            return
        free, least = disk.f_bavail * disk.f_frsize, min(_LEAST, disk.f_blocks * disk.f_frsize // _SHARE)
        # Only while it becomes less: a command's output counts as written too, and may go elsewhere.
        is_falling, self._free = self._free - free > _NOTHING or not free, free
        if free > least + _NEAR:
            self._look_later(_EVERY_S)
            return
        if free < least and is_falling:
            self._end_the_writer(least)
        else:
            self._held = {child: child.written() for child in self._held}
        self._look_later(_NEAR_S)

    def _end_the_writer(self, least: int) -> None:
        before, self._held = self._held, {child: child.written() for child in self._held}
        since = {child: _more(now, before[child]) for child, now in self._held.items()}
        child = max(since, key=lambda each: since[each], default=None)
        if child is not None and max(since[child]) > _NOTHING:
            log.warning("a command was ended: less than %d MB are free on the disk of the state folder", least >> 20)
            child.end_for("disk", least)
            self._held.pop(child, None)


def _more(now: Written, before: Written) -> Written:
    return max(0, now[0] - before[0]), max(0, now[1] - before[1])
