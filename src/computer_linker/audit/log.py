"""What the dispatcher asks of the audit."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from computer_linker.model.event import Event
from computer_linker.model.unsynced import Unsynced


class AuditLog(Protocol):
    """Records events. When a method returns, the record survives `kill -9` of this service."""

    def intent(self, event: Event) -> Awaitable[None]:
        """Record what is about to happen, at once; awaited, it also survives a power cut."""
        ...

    def beside(self, work: Callable[[], None]) -> Awaitable[None]:
        """Run work that waits for the disk in the thread that makes intents durable, so that both are one wait."""
        ...

    def hand_over(self, intent: Awaitable[None]) -> Unsynced | None:
        """Leave it to somebody else to make this intent durable; None when that is under way already."""
        ...

    async def outcome(self, event: Event) -> None:
        """Join the outcome to the intent of the same operation."""
        ...

    async def record(self, event: Event) -> None:
        """Record an operation without side effects, or a refusal, whole."""
        ...
