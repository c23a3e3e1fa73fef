"""Intent before effect: the record of what is about to happen is durable before the first irreversible step."""

from collections.abc import Awaitable, Callable

from computer_linker.audit.log import AuditLog
from computer_linker.model.event import Event
from computer_linker.model.unsynced import Unsynced


class Intent:
    """The intent of one side effect, made durable beside the operation's preparation.

    Most operations start once it is durable. One that declares `awaits_intent` prepares (a temporary file, say) meanwhile, and
    awaits `ctx.durable_intent()` itself just before it changes anything.
    """

    def __init__(self, audit: AuditLog, event: Event) -> None:
        self._audit = audit
        self._event = event
        self._recorded: Awaitable[None] | None = None

    def record(self) -> None:
        """Write the record; it is on its way to the disk while the operation prepares. Raises what kept it from being written."""
        self._event.intended = True
        self._recorded = self._audit.intent(self._event)

    async def durable(self) -> None:
        """Return once the record is durable; raise what kept it from being so."""
        assert self._recorded is not None, "only after record()"
        await self._recorded

    def hand_over(self) -> Unsynced | None:
        """Leave it to somebody else to make the record durable before the effect; None when it is too late for that."""
        assert self._recorded is not None, "only after record()"
        return self._audit.hand_over(self._recorded)

    def beside(self, work: Callable[[], None]) -> Awaitable[None]:
        """Run work of the preparation that waits for the disk, in one wait with the record."""
        return self._audit.beside(work)
