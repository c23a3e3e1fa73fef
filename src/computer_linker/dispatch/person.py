"""The person at the machine: their own mouse or keyboard ends the act under way and makes the next one wait."""

import asyncio
import time
from collections import deque
from contextlib import aclosing

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.facts import InputSeen
from computer_linker.dispatch.lanes import Lanes
from computer_linker.errors import LinkError

_IDLE_S = 30.0
_MOTIONS, _WITHIN_MS = 3, 500
"""A hand moves the mouse many times a second; a table that shakes, now and then."""


class PersonWatch:
    """Listens for input for as long as the lane is in use, and a little longer. It never learns which key it was."""

    def __init__(self, computer: Computer, lanes: Lanes, lane: str = "desktop") -> None:
        self._computer = computer
        self._lanes = lanes
        self._lane = lane
        self._task: asyncio.Task[None] | None = None
        self._stop = anyio.CancelScope()
        self._is_possible = True
        self._motions: deque[int] = deque(maxlen=_MOTIONS)

    def wake(self) -> None:
        """Begin to listen, unless it does already or this computer cannot tell."""
        if self._is_possible and (self._task is None or self._task.done()):
            self._stop = anyio.CancelScope()
            self._task = asyncio.get_running_loop().create_task(self._listen())

    async def aclose(self) -> None:
        """Stop listening."""
        if self._task is not None and not self._task.done():
            # By its scope: a task that is cancelled outright would leave the connection it is just opening behind.
            self._stop.cancel()
            await asyncio.wait([self._task], timeout=5)

    async def _listen(self) -> None:
        try:
            with self._stop:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._until_idle, group.cancel_scope)
                    async with aclosing(self._computer.facts.input()) as seen:  # type: ignore[type-var]  # a generator
                        async for one in seen:
                            self._lanes.person_moved(self._lane, time.monotonic(), surely=self._is_theirs(one))
                    group.cancel_scope.cancel()
        except* LinkError:
            # No way to see input here; the lane then knows only of halt.
            self._is_possible = False

    def _is_theirs(self, one: InputSeen) -> bool:
        """True for what only a hand does: a press on a device, or steady movement of one.

        A release does not tell: the key may have gone down before the act, to begin it.
        """
        if one.by != "device" or one.kind == "released":
            return False
        if one.kind == "pressed":
            return True
        self._motions.append(one.at_ms)
        return len(self._motions) == _MOTIONS and one.at_ms - self._motions[0] <= _WITHIN_MS

    async def _until_idle(self, scope: anyio.CancelScope) -> None:
        # Nothing tells that a lane has been left alone, so this looks now and then.
        while not self._lanes.is_idle(self._lane, _IDLE_S):  # noqa: ASYNC110
            await anyio.sleep(_IDLE_S / 3)
        scope.cancel()
