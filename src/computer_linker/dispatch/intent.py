"""Intent before effect: the record of what is about to happen is durable before the first irreversible step."""

import asyncio
from collections.abc import Awaitable, Callable

from computer_linker.audit.log import AuditLog
from computer_linker.model.event import Event
from computer_linker.model.unsynced import Unsynced


class Intent:
    """The intent of one side effect.

    Most operations start once it is durable. One that declares `awaits_intent` prepares first (a temporary file, say), and
    just before it changes anything awaits `ctx.durable_intent()`, or has it made durable by whoever makes the change.
    """

    def __init__(self, audit: AuditLog, event: Event) -> None:
        self._audit = audit
        self._event = event
        self._told: asyncio.Future[None] | None = None

    def record(self) -> None:
        """Write the record. Raises what kept it from being written."""
        self._event.intended = True
        self._audit.intent(self._event)

    async def durable(self) -> None:
        """Return once the record is durable; raise what kept it from being so."""
        if self._told is None:
            self._told = self._audit.durable()
        await self._told

    def beside(self, work: Callable[[], None]) -> Awaitable[None]:
        """Run work of the preparation that waits for the disk, in one wait with the record."""
        self._told = self._audit.durable(work)
        return self._told

    def unsynced(self) -> Unsynced:
        """The file that holds the record, for whoever makes the change to make durable before it."""
        return self._audit.unsynced()
