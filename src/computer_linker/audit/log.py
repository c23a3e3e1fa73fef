"""What the dispatcher asks of the audit."""

from typing import Protocol

from computer_linker.model.event import Event


class AuditLog(Protocol):
    """Records events. When a method returns, the record survives `kill -9` of this service."""

    async def intent(self, event: Event) -> None:
        """Record what is about to happen; on return it also survives a power cut."""
        ...

    async def outcome(self, event: Event) -> None:
        """Join the outcome to the intent of the same operation."""
        ...

    async def record(self, event: Event) -> None:
        """Record an operation without side effects, or a refusal, whole."""
        ...
