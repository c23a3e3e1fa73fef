"""Lets long work in a thread yield the interpreter lock to other threads."""

import time

_WORK_S = 0.004
_PAUSE_S = 0.0001


class Pace:
    """Call `step` in a loop. The interpreter alone would switch to a waiting thread only every five milliseconds."""

    def __init__(self) -> None:
        self._until = time.monotonic() + _WORK_S

    def step(self) -> None:
        """Sleep briefly where the work has run for long enough."""
        if time.monotonic() > self._until:
            time.sleep(_PAUSE_S)
            self._until = time.monotonic() + _WORK_S
