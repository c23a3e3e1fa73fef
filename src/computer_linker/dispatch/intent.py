"""Intent before effect: the record of what is about to happen is durable before the first irreversible step."""

import asyncio
from collections.abc import Awaitable, Callable

from computer_linker.audit.log import AuditLog
from computer_linker.model.event import Event


class Intent:
    """The intent of one side effect.

    Most operations start once it is durable. One that declares `awaits_intent` prepares first (a temporary file, say), and
    just before it changes anything awaits `ctx.durable_intent()`.
    """

    def __init__(self, audit: AuditLog, event: Event) -> None:
        self._audit = audit
        self._event = event
        self._synced: asyncio.Future[None] | None = None

    def record(self) -> None:
        """Write the record. Raises the error that prevented it."""
        self._event.intended = True
        self._audit.intent(self._event)

    async def durable(self) -> None:
        """Return once the record is durable; raises the error that prevented it."""
        if self._synced is None:
            self._synced = self._audit.durable()
        await self._synced

    def sync_with(self, work: Callable[[], None]) -> Awaitable[None]:
        """Run preparation that syncs to disk in the same group commit as the record."""
        self._synced = self._audit.durable(work)
        return self._synced
