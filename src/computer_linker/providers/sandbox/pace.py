"""Pace: long work in a thread that lets the other threads of this interpreter go first."""

import time

_WORK_S = 0.004
_PAUSE_S = 0.0001


class Pace:
    """Call `step` in a loop. The interpreter alone would let a waiting thread go on only every five milliseconds."""

    def __init__(self) -> None:
        self._until = time.monotonic() + _WORK_S

    def step(self) -> None:
        """Pause for a moment where the work went on for long enough."""
        if time.monotonic() > self._until:
            time.sleep(_PAUSE_S)
            self._until = time.monotonic() + _WORK_S
