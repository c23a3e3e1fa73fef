"""What the dispatcher asks of the audit."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from computer_linker.model.event import Event
from computer_linker.model.unsynced import Unsynced


class AuditLog(Protocol):
    """Records events. When a method returns, the record survives `kill -9` of this service."""

    def intent(self, event: Event) -> None:
        """Record what is about to happen."""
        ...

    def durable(self, first: Callable[[], None] | None = None) -> "asyncio.Future[None]":
        """Awaited, every intent so far also survives a power cut. `first` waits for the disk too; both are one wait."""
        ...

    def unsynced(self) -> Unsynced:
        """The file that holds the intents so far, for somebody else to make durable."""
        ...

    async def outcome(self, event: Event) -> None:
        """Join the outcome to the intent of the same operation."""
        ...

    async def record(self, event: Event) -> None:
        """Record an operation without side effects, or a refusal, whole."""
        ...
