"""Work that lasts as long as the service: one that fails is recorded and begun again, never silently gone."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)

_PAUSE_S = 5.0
_NUDGE_S = 0.2


def lasting(work: Callable[[], Awaitable[None]], what: str) -> asyncio.Task[None]:
    """A task that ends only when it is cancelled."""
    return asyncio.get_running_loop().create_task(_again(work, what), name=what)


async def end(tasks: list[asyncio.Task[None]], within_s: float = 10.0) -> None:
    """Cancel them and wait until they have ended."""
    deadline = asyncio.get_running_loop().time() + within_s
    left = {task for task in tasks if not task.done()}
    while left and asyncio.get_running_loop().time() < deadline:
        for task in left:
            # Again and again: the client library swallows a cancellation that meets a message.
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_NUDGE_S)


async def bounded(work: Coroutine[Any, Any, None], within_s: float) -> None:
    """Run it for so long at most, even when it swallows its cancellation. Raises TimeoutError."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        done, _ = await asyncio.wait([task], timeout=within_s)
    finally:
        await end([task], within_s)
    if not done:
        raise TimeoutError
    task.result()


async def _again(work: Callable[[], Awaitable[None]], what: str) -> None:
    while True:
        try:
            await work()
        except Exception:  # A task root: nobody above would hear of it.
            log.exception("%s failed and begins again", what)
        await asyncio.sleep(_PAUSE_S)
