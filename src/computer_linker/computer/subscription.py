"""A bounded queue of change events for one listener."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from computer_linker.computer.facets.accessibility import Change

_LIMIT = 4_096


class Subscription:
    """The pending changes of one listener; the oldest are dropped when they are not consumed."""

    def __init__(self, kinds: tuple[str, ...] = (), limit: int = _LIMIT) -> None:
        self._kinds = kinds
        self._waiting: deque[Change] = deque(maxlen=limit)
        self._arrived = asyncio.Event()

    def put(self, change: Change) -> None:
        if self._kinds and not change.kind.startswith(self._kinds):
            return
        self._waiting.append(change)
        self._arrived.set()

    def taken(self) -> list[Change]:
        """All pending changes."""
        found = list(self._waiting)
        self._waiting.clear()
        self._arrived.clear()
        return found

    async def wait(self, timeout_s: float) -> bool:
        """True as soon as a change is pending, False on timeout."""
        try:
            async with asyncio.timeout(max(0.0, timeout_s)):
                await self._arrived.wait()
        except TimeoutError:
            return False
        return True

    async def __aiter__(self) -> AsyncIterator[Change]:
        while True:
            await self._arrived.wait()
            for change in self.taken():
                yield change
