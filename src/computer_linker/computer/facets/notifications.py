"""Notifications: what applications told the person."""

from collections.abc import AsyncIterator
from typing import Protocol

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
