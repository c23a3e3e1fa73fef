"""Idempotency of a peer's calls: a call repeated after a dropped link is answered and not executed again."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from computer_linker.errors import LimitExceeded, PermissionDenied, ProviderUnavailable
from computer_linker.model.envelope import Reply
from computer_linker.transports.peer.facets import Plain
from computer_linker.transports.peer.frames import packed

Work = Callable[[], Awaitable[Reply]]
_KEEP_S = 600.0
_MAX_KEPT = 4000
_SETTLED_S = 60.0
"""After this an answer over an unbroken link is not requested again: it may be forgotten when there are many."""
_MAX_ANSWERS = 16 * 1024 * 1024
"""Bytes of all stored answers to one peer; beyond it, only the fact that a call was answered is stored."""
_MAX_ACTS = 128
"""Acts of one peer running at once, over all of its links."""


@dataclass(slots=True)
class _Act:
    digest: bytes
    task: asyncio.Task[Reply] | None
    ended_at: float | None = None
    size: int = 0


class Acts:
    """The calls of one peer by idempotency key."""

    def __init__(self) -> None:
        self._acts: dict[str, _Act] = {}
        self._running = 0
        self._bytes = 0

    @property
    def bytes_kept(self) -> int:
        """Bytes of the stored answers."""
        return self._bytes

    def run(self, key: str, digest: bytes, work: Work) -> asyncio.Task[Reply]:
        """The act of this key: the running or finished one, or a new one. Raises for a key that belongs to another request."""
        known = self._acts.get(key)
        if known is not None:
            if known.digest != digest:
                raise PermissionDenied("That key belongs to another request.", rule="replayed_key")
            if known.task is None:
                raise ProviderUnavailable(
                    "It was done, and what it answered is not kept any more.", effect="unverifiable"
                )
            return known.task
        self._make_room(time.monotonic())
        if len(self._acts) >= _MAX_KEPT or self._running >= _MAX_ACTS:
            raise LimitExceeded("Too many calls are remembered for this peer; wait a little.")
        task = asyncio.ensure_future(_as_coroutine(work))
        act = self._acts[key] = _Act(digest, task)
        self._running += 1
        task.add_done_callback(lambda done: self._ended(act, done))
        return task

    def end(self) -> None:
        """Cancel what is running, when the peer's access was revoked."""
        for act in self._acts.values():
            if act.task is not None:
                act.task.cancel()

    def _make_room(self, now: float) -> None:
        """Forget old acts, the oldest first; when there are many, those that are not requested again."""
        is_full = len(self._acts) >= _MAX_KEPT
        before = now - (_SETTLED_S if is_full else _KEEP_S)
        gone: list[str] = []
        for key, act in self._acts.items():
            if act.ended_at is not None and act.ended_at < before and len(gone) < _MAX_KEPT // 4:
                gone.append(key)
            elif not is_full:
                break
        for key in gone:
            self._bytes -= self._acts.pop(key).size

    def _ended(self, act: _Act, done: asyncio.Task[Reply]) -> None:
        act.ended_at = time.monotonic()
        self._running -= 1
        if not done.cancelled() and done.exception() is None:
            reply = done.result()
            act.size = len(packed(plain(reply.envelope))) + sum(len(item.data) for item in reply.attachments)
            self._bytes += act.size
        for old in self._acts.values() if self._bytes > _MAX_ANSWERS else ():
            if old.ended_at is not None and old is not act:
                self._bytes -= old.size
                old.size, old.task = 0, None
            if self._bytes <= _MAX_ANSWERS:
                return


def plain(envelope: dict[str, Any]) -> dict[str, Any]:
    """The envelope as plain values; facet answers are plain already and may contain bytes."""
    if envelope.get("ok") and isinstance(envelope["data"], Plain):
        return {**envelope, "data": envelope["data"].value}
    made: dict[str, Any] = to_jsonable_python(envelope, by_alias=True)
    return made


async def _as_coroutine(work: Work) -> Reply:
    return await work()
