"""Group commit: one sync makes the journal durable for everyone who waits."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from computer_linker.audit.faults import AuditUnavailable

_HANDS = 8
"""Threads that share the work of one round; syncs of several files at once are one commit of the file system."""
_QUICK_S = 0.001
"""A sync that takes less than this is done by the loop itself: to hand it to a thread and back costs as much."""
_WEIGHT = 1 / 8
"""What the newest sync counts for in how quick the disk is thought to be: one stall keeps the loop away for about twenty."""


@dataclass(slots=True)
class _Waiter:
    told: asyncio.Future[None]
    first: Callable[[], None] | None
    failure: BaseException | None = None

    def prepare(self) -> None:
        if self.first is None:
            return
        try:
            self.first()
        except BaseException as error:  # handed to the one who waits, whatever it is
            self.failure = error


_Round = tuple[asyncio.AbstractEventLoop, Sequence[_Waiter]]


class GroupSync:
    """Runs `sync` for all who wait. Those who come while one runs, or in the same turn of the loop, share the next.

    It runs in a thread of its own, unless one call alone waits and the disk has been quick of late.
    """

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._waiting: list[_Waiter] = []
        self._rounds: queue.SimpleQueue[_Round | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._hands: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False
        self._takes_s = 2 * _QUICK_S
        """How long a sync has taken of late; slow until it is known."""

    def done(self, first: Callable[[], None] | None = None) -> asyncio.Future[None]:
        """Done once what was appended before survives a power cut; fails with AuditUnavailable when it cannot.

        `first` waits for the disk too (the sync of another, small file). It runs in the same round, before the journal's
        own sync, so that both are one wait; the future fails with whatever it raises.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        waiter = _Waiter(loop.create_future(), first)
        self._waiting.append(waiter)
        if not self._is_due:
            # With the end of this turn, so that what the turn still prepares comes along.
            self._is_due = True
            loop.call_soon(self._go)
        return waiter.told

    def close(self) -> None:
        """End the threads."""
        self._rounds.put(None)
        if self._thread is not None:
            self._thread.join(timeout=10)
        if self._hands is not None:
            self._hands.shutdown(wait=False)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_due = False
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="audit-sync", daemon=True)
            self._thread.start()

    def _go(self) -> None:
        assert self._loop is not None
        waiting, self._waiting = self._waiting, []
        if self._takes_s < _QUICK_S and len(waiting) == 1:
            self._release(waiting, self._round(waiting))
        else:
            self._rounds.put((self._loop, waiting))

    def _run(self) -> None:
        while (turn := self._rounds.get()) is not None:
            loop, waiting = turn
            failure = self._round(waiting)
            try:
                loop.call_soon_threadsafe(self._release, waiting, failure)
            except RuntimeError:
                # The loop has ended, and with it everyone who waited.
                continue

    def _round(self, waiting: Sequence[_Waiter]) -> AuditUnavailable | None:
        began = time.perf_counter()
        self._prepare(waiting)
        failure: AuditUnavailable | None = None
        try:
            self._sync()
        except AuditUnavailable as error:
            failure = error
        self._takes_s += _WEIGHT * (time.perf_counter() - began - self._takes_s)
        return failure

    def _prepare(self, waiting: Sequence[_Waiter]) -> None:
        busy = [waiter for waiter in waiting if waiter.first is not None]
        if len(busy) < 2:
            for waiter in busy:
                waiter.prepare()
            return
        if self._hands is None:
            self._hands = ThreadPoolExecutor(_HANDS, thread_name_prefix="disk")
        list(self._hands.map(_Waiter.prepare, busy))

    def _release(self, waiting: Sequence[_Waiter], failure: AuditUnavailable | None) -> None:
        self._is_due = bool(self._waiting)
        if self._is_due:
            self._go()
        for waiter in waiting:
            if waiter.told.done():
                continue
            error = waiter.failure or failure
            if error is None:
                waiter.told.set_result(None)
            else:
                waiter.told.set_exception(error)
                # Whoever never comes to await it was stopped by something else, which is told instead.
                waiter.told.exception()
