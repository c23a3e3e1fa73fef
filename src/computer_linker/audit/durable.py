"""Group commit: one thread makes the journal durable for everyone who waits."""

import asyncio
import threading
from collections.abc import Callable


class GroupSync:
    """Runs `sync` in its own thread. Those who come while one runs share the next."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._waiting: list[asyncio.Future[None]] = []
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._running = False

    async def done(self) -> None:
        """Return once what was appended before survives a power cut. Raises OSError when it cannot."""
        loop = asyncio.get_running_loop()
        if self._thread is None or loop is not self._loop:
            self._begin(loop)
        waiter = loop.create_future()
        self._waiting.append(waiter)
        if not self._running:
            self._running = True
            self._wake.set()
        await waiter

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running = False
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="audit-sync", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closed:
                return
            loop, waiting = self._loop, self._waiting
            self._waiting = []
            failure: OSError | None = None
            try:
                self._sync()
            except OSError as error:
                failure = error
            if loop is not None:
                self._tell(loop, waiting, failure)

    def _tell(
        self, loop: asyncio.AbstractEventLoop, waiting: list[asyncio.Future[None]], failure: OSError | None
    ) -> None:
        def release() -> None:
            self._running = bool(self._waiting)
            if self._running:
                self._wake.set()
            for waiter in waiting:
                if waiter.done():
                    continue
                if failure is None:
                    waiter.set_result(None)
                else:
                    waiter.set_exception(failure)

        try:
            loop.call_soon_threadsafe(release)
        except RuntimeError:
            # The loop has ended, and with it everyone who waited.
            return
