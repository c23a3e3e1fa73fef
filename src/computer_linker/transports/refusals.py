"""Refused strangers in the history, without letting them fill it: a few of a kind a minute, then a count."""

import time

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import PermissionDenied
from computer_linker.model.principal import Principal

STARTED_BY_SERVICE = "started_by_the_service"
"""The rule of a refusal because this service started the process, at any depth."""
_PER_MINUTE = 30


class RefusalNotes:
    """Writes at most `_PER_MINUTE` refusals a minute; the next written one says how many were left out."""

    def __init__(self, dispatcher: Dispatcher, entry: str = "http") -> None:
        """`entry` is what the history calls the way they came."""
        self._dispatcher = dispatcher
        self._entry = entry
        self._minute = 0
        self._written = 0
        self._left_out = 0

    async def note(self, peer: str, rule: str) -> None:
        """Audit one refused request; `rule` says what was wrong with it."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._written = minute, 0
        if self._written >= _PER_MINUTE:
            self._left_out += 1
            return
        self._written += 1
        entry = self._entry
        stranger = Principal("unauthenticated", "loopback", session=entry, connection=f"{entry}-{peer}", client=None)
        more, self._left_out = f" ({self._left_out} more before it)" if self._left_out else "", 0
        error = PermissionDenied("The request was refused before anything was asked of it.", rule=rule + more)
        await self._dispatcher.refuse({"op": f"{entry}.request"}, stranger, error)
