"""The controls of another machine's applications, and what those say of their changes."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import anyio

from computer_linker.computer.facets.accessibility import Change
from computer_linker.computer.remote.forward import Forwarded

_KEPT = 10_000


class RemoteAccessibility(Forwarded):
    """Forwards every question; changes come as a stream for as long as they are listened to."""

    @asynccontextmanager
    async def changes(self, kinds: Sequence[str] = ()) -> AsyncIterator["RemoteChanges"]:
        """Listen to what applications say there for as long as it is held."""
        told = RemoteChanges()
        method = self._methods["changes"]

        async def listen() -> None:
            items = self._link.stream(self._scope(), method.name, {"kinds": list(kinds)})
            async for item in items:
                told.put(method.from_answer(item, []))

        listening = asyncio.ensure_future(listen())
        try:
            yield told
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening


class RemoteChanges:
    """Changes that arrived and were not taken yet; the oldest are forgotten when nobody takes them."""

    def __init__(self) -> None:
        self._waiting: deque[Change] = deque(maxlen=_KEPT)
        self._arrived = anyio.Event()

    async def __aiter__(self) -> AsyncIterator[Change]:
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            await self._arrived.wait()

    def put(self, change: Change) -> None:
        """Add a change, from the other machine or noticed in another way."""
        self._waiting.append(change)
        self._arrived.set()
        self._arrived = anyio.Event()

    def taken(self) -> list[Change]:
        """All that arrived and was not taken yet, without waiting."""
        found = list(self._waiting)
        self._waiting.clear()
        return found

    async def wait(self, timeout_s: float) -> bool:
        """Return True as soon as something arrived, False when the time is up."""
        if self._waiting:
            return True
        with anyio.move_on_after(timeout_s):
            await self._arrived.wait()
        return bool(self._waiting)
