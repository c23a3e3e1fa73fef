"""Progress notifications to a waiting client: the newest report is sent, older unsent ones are dropped, values only grow."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from computer_linker.registry.context import Progress

Send = Callable[[float, float | None, str | None], Awaitable[None]]


class Rising:
    """Makes each progress value greater than the previous one, as the protocol requires."""

    def __init__(self) -> None:
        self._last = 0.0

    def next(self, current: float | None) -> float:
        self._last = current if current is not None and current > self._last else self._last + 0.001
        return round(self._last, 3)


@asynccontextmanager
async def courier(send: Send) -> AsyncIterator[Progress]:
    """A `report` that never blocks its caller; reports are sent concurrently with the running operation."""
    newest: list[tuple[str, float | None, float | None]] = []
    updated = anyio.Event()
    rising = Rising()

    def report(message: str, current: float | None, total: float | None) -> None:
        newest[:] = [(message, current, total)]
        updated.set()

    async def deliver() -> None:
        nonlocal updated
        while True:
            await updated.wait()
            updated = anyio.Event()
            message, current, total = newest.pop()
            await send(rising.next(current), total, message)

    async with anyio.create_task_group() as group:
        group.start_soon(deliver)
        yield report
        group.cancel_scope.cancel()
