"""AuditStore: the history the dispatcher writes to."""

import asyncio
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from computer_linker.audit import record
from computer_linker.audit.ballast import may_use
from computer_linker.audit.durable import GroupSync
from computer_linker.audit.faults import AuditDamaged, AuditUnavailable, unwritable
from computer_linker.audit.journal import AuditJournal
from computer_linker.audit.retention import Flood
from computer_linker.audit.secret import Key
from computer_linker.model.event import Event
from computer_linker.services import Services
from computer_linker.vault.mask import Mask
from computer_linker.vault.vault import Vault

if TYPE_CHECKING:
    from computer_linker.audit.index import Index

log = logging.getLogger(__name__)


_IDLE_S = 2.0
_BACKLOG = 20_000
"""This many records are indexed even under load, so that a query need not wait for them."""
_MAX_OWED = 10_000


class AuditStore:
    """Writes events to the journal. An append is a short write and happens at once, on the loop's thread."""

    def __init__(self, folder: Path, machine: str = "", mask: Callable[[], Mask] = lambda: Mask(())) -> None:
        self.folder = folder
        self._mask = mask
        """The stored secrets, none of which is kept in the history."""
        try:
            self.journal = AuditJournal(folder, machine)
            self._restore_ballast()
        except OSError as error:
            raise AuditDamaged(
                f"The history in {folder} cannot be opened: {error.strerror or error}.",
                hint="The state folder must be writable by the user who runs the service, with space left.",
            ) from error
        self._index: Index | None = None
        self._durable = GroupSync(self._sync)
        self._running: set[str] = set()
        self._owed: deque[str] = deque(maxlen=_MAX_OWED)
        """Outcomes that could not be written when they were due; they go first when there is space again."""
        self._flood = Flood()
        self.feed = LiveFeed()
        self._indexed = self.journal.head.number
        self._prune_at = time.monotonic() + 60
        self._timer: asyncio.TimerHandle | None = None
        self._will_release = False
        self._catching_up: threading.Thread | None = None

    @classmethod
    def open(cls, services: Services) -> Self:
        """The history of this state folder. Raises AuditDamaged when it is not what this service wrote."""
        vault = services.use(Vault)
        return cls(services.home / "audit", services.config.machine_id, lambda: vault.mask)

    @property
    def index(self) -> "Index":
        """The index, created on first use: a service that only writes loads no database."""
        if self._index is None:
            from computer_linker.audit.index import Index

            self._index = Index(self.folder, self.journal.key)
        return self._index

    @property
    def key(self) -> Key:
        """The key of this installation."""
        return self.journal.key

    @property
    def running(self) -> frozenset[str]:
        """The operations of this process that have an intent and no outcome yet."""
        return frozenset(self._running)

    def is_running(self, operation_id: str) -> bool:
        """Return True while an operation of this process has an intent and no outcome yet."""
        return operation_id in self._running

    def intent(self, event: Event) -> None:
        """Record what is about to happen."""
        self._append(record.opening(event, "intent", self.key), is_urgent=may_use(event))
        self._running.add(event.operation_id)

    def durable(self, first: Callable[[], None] | None = None) -> "asyncio.Future[None]":
        """Return a future: once done, every intent so far survives a power cut. `first` is another sync that shares the wait."""
        return self._durable.done(first)

    async def outcome(self, event: Event) -> None:
        """Join the outcome to the intent of the same operation."""
        if event.operation_id not in self._running:
            # The intent could not be written, so nothing happened: this is a refusal, recorded whole.
            await self.record(event)
            return
        self._running.discard(event.operation_id)
        body = record.outcome(event, self.key)
        try:
            self._append(body, is_urgent=may_use(event))
        except AuditUnavailable:
            self._owed.append(body)
            raise

    async def record(self, event: Event) -> None:
        """Record an operation without side effects, or a refusal, whole."""
        if self._flood.takes(event):
            return
        self._append(record.opening(event, "record", self.key), is_urgent=may_use(event))

    async def aclose(self) -> None:
        """Write pending records and close the files."""
        self.journal.release()
        if self._timer is not None:
            self._timer.cancel()
        if self._catching_up is not None:
            self.index.leave_off = True
            self._catching_up.join(timeout=10)
        self._durable.close()
        left = [*self._owed, *_left_out(self._flood.rest())]
        try:
            if left:
                self.journal.append(left)
        except AuditUnavailable:
            pass  # The intents are there; their outcomes will read "unknown".
        finally:
            self.journal.close()

    def _sync(self) -> None:
        try:
            self.journal.sync()
        except OSError as error:
            raise unwritable(error) from error

    def _append(self, body: str, *, is_urgent: bool) -> None:
        if mask := self._mask():
            body = mask.masked_text(body)
        if self._flood:
            self._owed.extend(_left_out(self._flood.due()))
        # The lock is held for the rest of this loop iteration: records that arrive together share one lock.
        bodies = [*self._owed, body] if self._owed else [body]
        self.journal.append(bodies, keep_lock=True, is_urgent=is_urgent)
        self._owed.clear()
        self.feed.add(body)
        if not self._will_release:
            self._will_release = True
            asyncio.get_running_loop().call_soon(self._release)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_IDLE_S, self._idle, self.journal.head.number)

    def _release(self) -> None:
        self._will_release = False
        self.journal.release()

    def _idle(self, number: int) -> None:
        """Index new records while the service is idle, so that a query finds little left to do."""
        self._timer = None
        newest = self.journal.head.number
        busy = newest != number and newest - self._indexed < _BACKLOG
        if busy or (self._catching_up is not None and self._catching_up.is_alive()):
            self._timer = asyncio.get_running_loop().call_later(_IDLE_S, self._idle, newest)
        else:
            self._indexed = newest
            self._catching_up = threading.Thread(target=self._tidy, name="audit-index", daemon=True)
            self._catching_up.start()

    def _restore_ballast(self) -> None:
        try:
            self.journal.ballast.restore()
        except OSError as error:
            log.warning("no space could be reserved for the history: %s", error)

    def _tidy(self) -> None:
        from sqlite3 import Error

        from computer_linker.audit.prune import is_over, keep_bounded

        self._restore_ballast()
        try:
            self.index.catch_up()
            if time.monotonic() >= self._prune_at or is_over(self.folder):
                self._prune_at = time.monotonic() + 86_400
                keep_bounded(self.folder)
                self.index.catch_up()
        except (Error, OSError, AuditDamaged) as error:
            # Nothing is lost: the next query catches up, or reports the error.
            log.warning("the history's index is behind: %s", error)


def _left_out(counts: Counter[tuple[str, str]]) -> list[str]:
    return [record.left_out(principal, code, count) for (principal, code), count in counts.items()]


# LiveFeed: the newest records of the history in memory, and a wait for the next one.

_KEPT = 1000


class LiveFeed:
    """Numbers records as they are appended. Appending costs a deque entry; readers are woken once per loop iteration."""

    def __init__(self) -> None:
        self._kept: deque[str] = deque(maxlen=_KEPT)
        self._readers: set[asyncio.Future[None]] = set()
        self.number = 0
        """How many records there were since the service began."""

    def add(self, record: str) -> None:
        """Keep a record: the members of a JSON object, as the journal stores them."""
        self.number += 1
        self._kept.append(record)
        while self._readers:
            reader = self._readers.pop()
            if not reader.done():
                reader.set_result(None)

    def since(self, number: int) -> list[str]:
        """The records after this number, as far as they are kept; all of them for a number of another service."""
        missing = self.number - number if 0 <= number <= self.number else self.number
        return list(self._kept)[-missing:] if missing else []

    async def changed(self, number: int, seconds: float) -> None:
        """Return once there is a record after this number, or after so many seconds."""
        if self.number != number:
            return
        reader: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers.add(reader)
        try:
            await asyncio.wait([reader], timeout=seconds)
        finally:
            self._readers.discard(reader)
