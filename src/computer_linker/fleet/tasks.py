"""Background tasks that run as long as the service: one that fails is logged and restarted."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)

_PAUSE_S = 5.0
_NUDGE_S = 0.2


def restarting_task(work: Callable[[], Awaitable[None]], name: str) -> asyncio.Task[None]:
    """Start a task that ends only when it is cancelled."""

    async def run() -> None:
        while True:
            try:
                await work()
            except Exception:  # The outermost frame of a task: nothing above it would log this.
                log.exception("%s failed and is restarted", name)
            await asyncio.sleep(_PAUSE_S)

    return asyncio.get_running_loop().create_task(run(), name=name)


async def cancel(tasks: list[asyncio.Task[None]], within_s: float = 10.0) -> None:
    """Cancel the tasks and wait until they have ended."""
    deadline = asyncio.get_running_loop().time() + within_s
    left = {task for task in tasks if not task.done()}
    while left and asyncio.get_running_loop().time() < deadline:
        for task in left:
            # Repeatedly: the client library swallows a cancellation that coincides with a message.
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_NUDGE_S)


async def bounded(work: Coroutine[Any, Any, None], within_s: float) -> None:
    """Run a coroutine with a time limit, even if it swallows its cancellation. Raises TimeoutError."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        done, _ = await asyncio.wait([task], timeout=within_s)
    finally:
        await cancel([task], within_s)
    if not done:
        raise TimeoutError
    task.result()
