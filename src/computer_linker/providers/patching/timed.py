"""Comparing two texts within a time: the usual comparison takes minutes over a few kilobytes that somebody chose for it."""

import time
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any


class TookTooLong(Exception):
    """The time was over before the comparison was."""


class TimedMatcher(SequenceMatcher[Any]):
    """A comparison that looks at the clock with every piece it finds. Raises TookTooLong."""

    def __init__(
        self, one: Sequence[Any] = "", other: Sequence[Any] = "", *, until: float, autojunk: bool = False
    ) -> None:
        self._until = until
        super().__init__(None, one, other, autojunk)

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Any:
        """As it always does, unless the time is over."""
        if time.monotonic() > self._until:
            raise TookTooLong
        return super().find_longest_match(alo, ahi, blo, bhi)
