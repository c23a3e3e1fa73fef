"""Intent before effect: the record of what is about to happen is durable before the first irreversible step."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from computer_linker.audit.log import AuditLog
from computer_linker.model.event import Event


class Intent:
    """The intent of one side effect, made durable beside the operation's preparation.

    Most operations start once it is durable. One that declares `awaits_intent` prepares (a temporary file, say) meanwhile, and
    awaits `ctx.durable_intent()` itself just before it changes anything.
    """

    def __init__(self, audit: AuditLog, event: Event) -> None:
        self._audit = audit
        self._event = event
        self._recorded: asyncio.Task[None] | None = None

    async def durable(self) -> None:
        """Return once the record is durable; raise what kept it from being so."""
        assert self._recorded is not None, "only inside recording()"
        # Shielded: a cancelled operation must not leave a half-written record behind.
        await asyncio.shield(self._recorded)

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[None]:
        """Write the record while the body runs; the body's outcome never comes before it."""
        self._event.intended = True
        # A task, not a task group: the body's own exception must leave here as it is.
        self._recorded = asyncio.get_running_loop().create_task(self._audit.intent(self._event))
        try:
            yield
        finally:
            if not self._recorded.done():
                await asyncio.wait([self._recorded])
            if not self._recorded.cancelled():
                self._recorded.exception()
