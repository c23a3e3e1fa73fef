"""Replay protection and idempotency: each message is accepted once, each keyed call is executed once."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from computer_linker.errors import Conflict, LimitExceeded, PermissionDenied
from computer_linker.model.envelope import Reply

_MAX_NONCES = 100_000
_MAX_ACTS = 20_000
_KEEP_ANSWER_S = 120.0
_MAX_UNDER_WAY = 64


class Ledger:
    """One run of one machine. A new run has another epoch, so that nothing of an earlier run need be stored."""

    def __init__(self) -> None:
        self._nonces: dict[str, float] = {}
        self._acts: dict[str, tuple[float, float, asyncio.Task[Reply] | None]] = {}
        self._running: set[asyncio.Task[Reply]] = set()
        self._tidy_at = 0.0

    def spend(self, nonce: str, until: float) -> None:
        """Record a message's nonce. Raises PermissionDenied for a repeated one."""
        self._tidy()
        if nonce in self._nonces:
            raise PermissionDenied("This message came before.", rule="replayed")
        if len(self._nonces) >= _MAX_NONCES:
            raise LimitExceeded("Too many messages are remembered; wait a little.")
        self._nonces[nonce] = until

    def act(self, key: str, until: float, work: Callable[[], Awaitable[Reply]]) -> asyncio.Task[Reply]:
        """Return the task of this key: the running or finished one, or a new one."""
        known = self._acts.get(key)
        if known is not None:
            if known[2] is None:
                raise Conflict("This was done before; its answer is no longer kept.", effect="unverifiable")
            return known[2]
        if len(self._running) >= _MAX_UNDER_WAY or len(self._acts) >= _MAX_ACTS:
            raise LimitExceeded("Too many calls of the fleet are under way on this machine.", limit=_MAX_UNDER_WAY)
        task = asyncio.ensure_future(_as_coroutine(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        self._acts[key] = (until, time.time() + _KEEP_ANSWER_S, task)
        return task

    def cancel(self, key: str) -> None:
        """Cancel a running call."""
        known = self._acts.get(key)
        if known is not None and known[2] is not None:
            known[2].cancel()

    async def aclose(self) -> None:
        """Cancel what is running."""
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(list(self._running), timeout=10)

    def _tidy(self) -> None:
        now = time.time()
        if now < self._tidy_at:
            return
        self._tidy_at = now + 5
        self._nonces = {nonce: until for nonce, until in self._nonces.items() if until > now}
        for key, (until, keep_until, task) in list(self._acts.items()):
            if task is not None and not task.done():
                continue
            if until <= now:
                del self._acts[key]
            elif keep_until <= now:
                self._acts[key] = (until, keep_until, None)


async def _as_coroutine(work: Callable[[], Awaitable[Reply]]) -> Reply:
    return await work()
