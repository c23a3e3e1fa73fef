"""Intent before effect: the record of what is about to happen is durable before the first irreversible step."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from computer_linker.audit.log import AuditLog
from computer_linker.model.event import Event


class Intent:
    """The intent of one side effect.

    Most operations start once it is durable. One that declares `awaits_intent` prepares (a temporary file, say) while the
    record is being made durable, and awaits `ctx.durable_intent()` itself just before it changes anything.
    """

    def __init__(self, audit: AuditLog, event: Event) -> None:
        self._audit = audit
        self._event = event
        self._done = anyio.Event()
        self._failure: BaseException | None = None

    async def durable(self) -> None:
        """Return once the record is durable; raise what kept it from being so."""
        await self._done.wait()
        if self._failure is not None:
            raise self._failure

    @asynccontextmanager
    async def recording(self, *, overlaps: bool) -> AsyncIterator[None]:
        """Run the operation's body beside, or after, the making of the record."""
        self._event.intended = True
        if not overlaps:
            await self._audit.intent(self._event)
            self._done.set()
            yield
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._record)
            yield

    async def _record(self) -> None:
        try:
            await self._audit.intent(self._event)
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._done.set()
