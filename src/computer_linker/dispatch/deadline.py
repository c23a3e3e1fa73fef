"""The deadline of a call."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work. Raises TimeoutError when it takes longer."""
    with anyio.CancelScope() as scope:
        # Most operations never wait, and a timer costs more than they do: it is set with the first wait.
        loop = asyncio.get_running_loop()
        arming = loop.call_soon(_arm, scope, loop.time() + seconds)
        try:
            return await work
        finally:
            arming.cancel()
    raise TimeoutError


def _arm(scope: anyio.CancelScope, deadline: float) -> None:
    scope.deadline = deadline
