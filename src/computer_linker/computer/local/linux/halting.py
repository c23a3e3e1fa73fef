"""Runs blocking desktop work in a thread, one job at a time; a cancelled job sends no further press."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TypeVar

import anyio
from anyio import to_thread

from computer_linker.errors import Aborted

T = TypeVar("T")
_HALT_S = 2.0


class Halt(threading.Event):
    """Set when the caller was cancelled: the job must send no further press."""

    is_working = False


_HALT: ContextVar[Halt | None] = ContextVar("desktop_halt", default=None)
"""The halt of this thread's job; a worker thread inherits its caller's."""


def check_halt() -> None:
    """Raise Aborted once this thread's caller was cancelled. Called before each press and movement, never a release."""
    halt = _HALT.get()
    if halt is not None and halt.is_set():
        raise Aborted("The work was stopped.")


class OneAtATime:
    """Runs jobs in a thread. `lock` is held while a job really runs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._limiter = anyio.CapacityLimiter(1)

    async def run(self, work: Callable[[], T]) -> T:
        """Run a job and return its result.

        A cancelled caller returns once the job has stopped: it sends no further press, and releases what it holds. A job
        that does not stop within a moment (a display that hangs) is left to end by itself.
        """
        halt, ended = Halt(), asyncio.Event()
        loop = asyncio.get_running_loop()
        context = _HALT.set(halt)
        try:
            return await to_thread.run_sync(
                self._work, work, halt, lambda: _notify(loop, ended), limiter=self._limiter, abandon_on_cancel=True
            )
        except anyio.get_cancelled_exc_class():
            halt.set()
            with anyio.move_on_after(_HALT_S if halt.is_working else 0, shield=True):
                await ended.wait()
            raise
        finally:
            _HALT.reset(context)

    def _work(self, work: Callable[[], T], halt: Halt, tell: Callable[[], None]) -> T:
        # The limiter is released when a caller is cancelled, the lock only when the job has really ended.
        with self.lock:
            check_halt()
            halt.is_working = True
            try:
                return work()
            finally:
                tell()


def _notify(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    with suppress(RuntimeError):  # The loop is closed: there is no waiter.
        loop.call_soon_threadsafe(ended.set)
