"""What one listener has heard of changes and not taken yet."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from computer_linker.computer.facets.accessibility import Change

_KEPT = 4_096


class Subscription:
    """The changes that arrived for one listener; the oldest are dropped when nobody takes them."""

    def __init__(self, kinds: tuple[str, ...] = ()) -> None:
        self._kinds = kinds
        self._waiting: deque[Change] = deque(maxlen=_KEPT)
        self._arrived = asyncio.Event()

    def put(self, change: Change) -> None:
        if self._kinds and not change.kind.startswith(self._kinds):
            return
        self._waiting.append(change)
        self._arrived.set()

    def taken(self) -> list[Change]:
        """All that arrived and was not taken yet."""
        found = list(self._waiting)
        self._waiting.clear()
        self._arrived.clear()
        return found

    async def wait(self, timeout_s: float) -> bool:
        """True as soon as something is there."""
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
