"""Group commit: one sync makes the journal durable for all waiting calls."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from computer_linker.audit.faults import AuditUnavailable

_WORKERS = 8
"""Threads that share the work of one round; syncs of several files at once are one commit of the file system."""
_QUICK_S = 0.001
"""A faster sync runs on the event loop itself: passing it to a thread and back costs as much."""
_WEIGHT = 1 / 8
"""Weight of the newest sync in the moving average of sync time: after one stall about twenty syncs use the thread."""


@dataclass(slots=True)
class _Waiter:
    future: asyncio.Future[None]
    first: Callable[[], None] | None
    failure: BaseException | None = None

    def prepare(self) -> None:
        if self.first is None:
            return
        try:
            self.first()
        except BaseException as error:  # re-raised in the waiting call
            self.failure = error


_Round = tuple[asyncio.AbstractEventLoop, Sequence[_Waiter]]


class GroupSync:
    """Runs `sync` for all waiting calls. Calls that arrive while one runs, or in the same loop iteration, share the next.

    It runs in its own thread, unless only one call waits and recent syncs were fast.
    """

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._waiting: list[_Waiter] = []
        self._rounds: queue.SimpleQueue[_Round | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False
        self._takes_s = 2 * _QUICK_S
        """Moving average of sync time; slow until measured."""

    def done(self, first: Callable[[], None] | None = None) -> asyncio.Future[None]:
        """Return a future that is done once all earlier appends survive a power cut; it fails with AuditUnavailable otherwise.

        `first` waits for the disk too (the sync of another, small file). It runs in the same round, before the journal's
        own sync, so that both are one wait; the future fails with whatever it raises.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        waiter = _Waiter(loop.create_future(), first)
        self._waiting.append(waiter)
        if not self._is_due:
            # At the end of this loop iteration, so that what it still prepares is included.
            self._is_due = True
            loop.call_soon(self._go)
        return waiter.future

    def close(self) -> None:
        """End the threads."""
        self._rounds.put(None)
        if self._thread is not None:
            self._thread.join(timeout=10)
        if self._workers is not None:
            self._workers.shutdown(wait=False)

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
                # The loop has ended, and with it every waiting call.
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
        if self._workers is None:
            self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="disk")
        list(self._workers.map(_Waiter.prepare, busy))

    def _release(self, waiting: Sequence[_Waiter], failure: AuditUnavailable | None) -> None:
        self._is_due = bool(self._waiting)
        if self._is_due:
            self._go()
        for waiter in waiting:
            if waiter.future.done():
                continue
            error = waiter.failure or failure
            if error is None:
                waiter.future.set_result(None)
            else:
                waiter.future.set_exception(error)
                # Retrieved here: a call that never awaits it was stopped by another error, which is reported instead.
                waiter.future.exception()
