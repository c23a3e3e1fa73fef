"""The audit interface that the dispatcher uses."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from computer_linker.model.event import Event


class AuditLog(Protocol):
    """Records events. When a method returns, the record survives `kill -9` of this service."""

    def intent(self, event: Event) -> None:
        """Record what is about to happen."""
        ...

    def durable(self, first: Callable[[], None] | None = None) -> "asyncio.Future[None]":
        """Return a future: once done, every intent so far survives a power cut. `first` is another sync that shares the wait."""
        ...

    async def outcome(self, event: Event) -> None:
        """Join the outcome to the intent of the same operation."""
        ...

    async def record(self, event: Event) -> None:
        """Record an operation without side effects, or a refusal, whole."""
        ...


class Unrecorded:
    """Discards events: for the owner's read-only operations. A list that refreshes on the screen would fill the history."""

    def intent(self, event: Event) -> None:
        raise AssertionError(f"{event.op} changes something: it must be recorded")

    def durable(self, first: Callable[[], None] | None = None) -> "asyncio.Future[None]":
        raise AssertionError("only what was recorded can be durable")

    async def outcome(self, event: Event) -> None:
        raise AssertionError(f"{event.op} changes something: it must be recorded")

    async def record(self, event: Event) -> None:
        """Discard the event."""
