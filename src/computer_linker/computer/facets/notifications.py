"""Notifications: what applications showed to the person."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from computer_linker.model.base import Model


class Notification(Model):
    """One notice as it was shown."""

    app: str
    summary: str
    body: str
    received_at: str


class Notifications(Protocol):
    """Notices since this computer was opened."""

    async def recent(self) -> list[Notification]:
        """The notices seen so far, newest last, a bounded number of them."""
        ...

    def subscribe(self) -> AsyncIterator[Notification]:
        """New notices, for as long as it is iterated."""
        ...


class Question(Protocol):
    """A notice with buttons."""

    async def ask(self, summary: str, body: str, actions: Sequence[tuple[str, str]]) -> str | None:
        """Show it and wait: the key of the button pressed, or None when it was closed without an answer."""
        ...


@runtime_checkable
class Questions(Protocol):
    """A desktop whose notices can have buttons."""

    def question(self) -> AbstractAsyncContextManager[Question | None]:
        """Open a question; its notice is removed when the context exits. None where notices have no buttons."""
        ...
