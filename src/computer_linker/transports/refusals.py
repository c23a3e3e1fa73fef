"""Rate limits for refused requests: how many the history records, and how long a peer that guesses credentials waits."""

import time

from computer_linker.dispatch.dispatcher import Dispatcher
from computer_linker.errors import PermissionDenied
from computer_linker.model.principal import Principal

STARTED_BY_SERVICE = "started_by_the_service"
"""The rule of a refusal because this service started the process, at any depth."""
_PER_MINUTE = 30


class RefusalNotes:
    """Records at most `_PER_MINUTE` refusals a minute; the next recorded one has the count of omitted ones."""

    def __init__(self, dispatcher: Dispatcher, entry: str = "http") -> None:
        """`entry` is the history's name of the transport."""
        self._dispatcher = dispatcher
        self._entry = entry
        self._minute = 0
        self._written = 0
        self._left_out = 0

    async def note(self, peer: str, rule: str) -> None:
        """Audit one refused request; `rule` is the reason."""
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


_ALLOWED = 10
_WINDOW_S = 60.0
_MAX_PEERS = 1024


class Guesses:
    """Counts wrong credentials per peer in windows of a minute, for a bounded number of peers.

    The right credential is never refused: behind a tunnel every caller has the same peer address, so one who guesses could
    otherwise lock the owner out, and 256 random bits are not guessed at any rate.
    """

    def __init__(self) -> None:
        self._peers: dict[str, tuple[float, int]] = {}

    def wrong(self, peer: str) -> int | None:
        """Count one wrong credential; returns the seconds to wait once there were too many."""
        now = time.monotonic()
        began, count = self._peers.pop(peer, (now, 0))
        if now - began >= _WINDOW_S:
            began, count = now, 0
        while len(self._peers) >= _MAX_PEERS:
            self._peers.pop(next(iter(self._peers)))
        self._peers[peer] = (began, count + 1)
        return None if count < _ALLOWED else max(1, round(_WINDOW_S - (now - began)))
