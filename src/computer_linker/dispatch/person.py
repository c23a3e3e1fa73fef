"""Watches the person's own mouse and keyboard: their input ends the running act and makes the next one wait."""

import asyncio
import time
from collections import deque
from contextlib import aclosing

import anyio

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.facts import InputSeen
from computer_linker.dispatch.device_queues import DeviceQueues
from computer_linker.errors import LinkError

_IDLE_S = 30.0
_MOTIONS, _WITHIN_MS = 3, 500
"""A hand moves the mouse many times a second; vibration does so rarely."""


class PersonWatch:
    """Listens for input while the device queue is in use, and a little longer. It never receives which key it was."""

    def __init__(self, computer: Computer, queues: DeviceQueues, name: str = "desktop") -> None:
        self._computer = computer
        self._queues = queues
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._stop = anyio.CancelScope()
        self._is_possible = True
        self._motions: deque[int] = deque(maxlen=_MOTIONS)

    def wake(self) -> None:
        """Begin to listen, unless it does already or this computer cannot report input."""
        if self._is_possible and (self._task is None or self._task.done()):
            self._stop = anyio.CancelScope()
            self._task = asyncio.get_running_loop().create_task(self._listen())

    async def aclose(self) -> None:
        """Stop listening."""
        if self._task is not None and not self._task.done():
            # By its cancel scope: a task cancelled directly would leak the connection it is just opening.
            self._stop.cancel()
            await asyncio.wait([self._task], timeout=5)

    async def _listen(self) -> None:
        try:
            with self._stop:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._until_idle, group.cancel_scope)
                    async with aclosing(self._computer.facts.input()) as seen:  # type: ignore[type-var]  # a generator
                        async for one in seen:
                            self._queues.person_moved(self._name, time.monotonic(), surely=self._is_theirs(one))
                    group.cancel_scope.cancel()
        except* LinkError:
            # Input cannot be observed here; only halt then stops an act.
            self._is_possible = False

    def _is_theirs(self, one: InputSeen) -> bool:
        """True for input that only a person makes: a press on a device, or steady movement of one.

        A release does not count: the key may have been pressed before the act, to begin it.
        """
        if one.by != "device" or one.kind == "released":
            return False
        if one.kind == "pressed":
            return True
        self._motions.append(one.at_ms)
        return len(self._motions) == _MOTIONS and one.at_ms - self._motions[0] <= _WITHIN_MS

    async def _until_idle(self, scope: anyio.CancelScope) -> None:
        # There is no event for an idle queue, so this polls.
        while not self._queues.is_idle(self._name, _IDLE_S):  # noqa: ASYNC110
            await anyio.sleep(_IDLE_S / 3)
        scope.cancel()
