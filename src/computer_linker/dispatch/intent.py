"""Intent before effect: the record of what is about to happen is durable before the first irreversible step."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from computer_linker.audit.log import AuditLog
from computer_linker.model.event import Event
from computer_linker.registry.context import Context
from computer_linker.registry.operation import Operation


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


async def run_after_intent(ctx: Context, op: Operation, arguments: dict[str, Any], intent: Intent | None) -> Any:
    """Run the operation once its intent is on record, durably unless it waits for that itself."""
    if intent is None:
        return await op.run(ctx, **arguments)
    intent.record()
    if not op.passes_gate_itself:
        await ctx.durable_intent()
    return await op.run(ctx, **arguments)
