"""Bounded waits for events: the only place where tests sleep without a reason of their own.

The bound is generous, because it only decides when a test that would never end fails; a crowded machine must not reach it.
`step_s` is for a condition that holds for a moment only.
"""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

DEADLINE_S = 180.0
_STEP_S = 0.01
_Value = TypeVar("_Value")


async def until(condition: Callable[[], _Value], seconds: float = DEADLINE_S, step_s: float = _STEP_S) -> _Value:
    """Return the first true value of `condition`, evaluated again and again while the loop runs."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not true within {seconds:.0f} s, the last value was {value!r}"
        await anyio.sleep(step_s)
    return value


async def until_awaited(
    condition: Callable[[], Awaitable[_Value]], seconds: float = DEADLINE_S, step_s: float = _STEP_S
) -> _Value:
    """Return the first true value that `condition` resolves to."""
    deadline = time.monotonic() + seconds
    while not (value := await condition()):
        assert time.monotonic() < deadline, f"not true within {seconds:.0f} s, the last value was {value!r}"
        await anyio.sleep(step_s)
    return value


def wait_for(condition: Callable[[], _Value], seconds: float = DEADLINE_S, step_s: float = _STEP_S) -> _Value:
    """Return the first true value of `condition`, in a test without a loop."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not true within {seconds:.0f} s, the last value was {value!r}"
        time.sleep(step_s)
    return value
