"""Compares two texts within a time limit: difflib takes minutes over a few kilobytes of adversarial text."""

import time
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any


class TookTooLong(Exception):
    """The comparison exceeded its time limit."""


class TimedMatcher(SequenceMatcher[Any]):
    """A SequenceMatcher that checks the clock with every match. Raises TookTooLong."""

    def __init__(
        self, one: Sequence[Any] = "", other: Sequence[Any] = "", *, until: float, autojunk: bool = False
    ) -> None:
        self._until = until
        super().__init__(None, one, other, autojunk)

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Any:
        """Find as difflib does, unless the time is over."""
        if time.monotonic() > self._until:
            raise TookTooLong
        return super().find_longest_match(alo, ahi, blo, bhi)
