"""Wrong credentials by peer: after a few in a minute, a peer that guesses is told to wait.

The right credential is never refused: behind a tunnel every caller has the same peer address, so a stranger who guesses could
otherwise lock the owner out, and 256 random bits are not guessed at any rate.
"""

import time

_ALLOWED = 10
_WINDOW_S = 60.0
_MAX_PEERS = 1024


class Guesses:
    """Counts wrong credentials in windows of a minute; remembers a bounded number of peers."""

    def __init__(self) -> None:
        self._peers: dict[str, tuple[float, int]] = {}

    def wrong(self, peer: str) -> int | None:
        """Note one wrong credential; the seconds to wait once there were too many."""
        now = time.monotonic()
        began, count = self._peers.pop(peer, (now, 0))
        if now - began >= _WINDOW_S:
            began, count = now, 0
        while len(self._peers) >= _MAX_PEERS:
            self._peers.pop(next(iter(self._peers)))
        self._peers[peer] = (began, count + 1)
        return None if count < _ALLOWED else max(1, round(_WINDOW_S - (now - began)))
