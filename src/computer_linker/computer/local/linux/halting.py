"""Work on a desktop in a thread, one piece at a time, that presses nothing further once its caller has gone."""

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
    """Set when nobody waits for the work any more: it must press nothing further."""

    is_working = False


_HALT: ContextVar[Halt | None] = ContextVar("desktop_halt", default=None)
"""The halt of the work that this thread does; a worker thread gets its caller's."""


def check_halt() -> None:
    """Raise Aborted once the caller of this thread's work has gone. Asked before each press and movement, never a release."""
    halt = _HALT.get()
    if halt is not None and halt.is_set():
        raise Aborted("The work was stopped.")


class OneAtATime:
    """Runs work in a thread. `lock` is held while a piece of it really runs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._limiter = anyio.CapacityLimiter(1)

    async def run(self, work: Callable[[], T]) -> T:
        """Run it and give its result.

        A cancelled caller leaves once the work has stopped: it sends no further press, and releases what it holds. Work that
        does not stop within a moment (a display that hangs) is left to end by itself.
        """
        halt, ended = Halt(), asyncio.Event()
        loop = asyncio.get_running_loop()
        context = _HALT.set(halt)
        try:
            return await to_thread.run_sync(
                self._work, work, halt, lambda: _tell(loop, ended), limiter=self._limiter, abandon_on_cancel=True
            )
        except anyio.get_cancelled_exc_class():
            halt.set()
            with anyio.move_on_after(_HALT_S if halt.is_working else 0, shield=True):
                await ended.wait()
            raise
        finally:
            _HALT.reset(context)

    def _work(self, work: Callable[[], T], halt: Halt, tell: Callable[[], None]) -> T:
        # The limiter is let go when a caller is cancelled, the lock only when the work has really ended.
        with self.lock:
            check_halt()
            halt.is_working = True
            try:
                return work()
            finally:
                tell()


def _tell(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    with suppress(RuntimeError):  # The loop is closed: nobody waits.
        loop.call_soon_threadsafe(ended.set)
