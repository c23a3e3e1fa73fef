"""Bounds what refusals can add to the history: past a rate they are counted, and the count is kept."""

import time
from collections import Counter

from computer_linker.model.event import Event

PER_MINUTE = 1000
"""Refusals of one principal kept whole in a minute; at some 400 bytes each, well under a megabyte."""
MAX_KINDS = 50

REFUSED = frozenset(
    """
    invalid_request unknown_scope unknown_operation permission_denied path_out_of_scope
    confirm_required denied_by_person no_answer process_not_found
    """.split()
)


class Flood:
    """Counts refusals by minute. Whatever ran, or has an intent, is always kept whole."""

    def __init__(self) -> None:
        self._minute = 0
        self._kept: Counter[str] = Counter()
        self._left_out: Counter[tuple[str, str]] = Counter()

    def __bool__(self) -> bool:
        return bool(self._left_out)

    def takes(self, event: Event) -> bool:
        """Return True when this event is only counted."""
        if event.ok or event.error_code not in REFUSED:
            return False
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._kept = minute, Counter()
        who = event.principal if len(self._kept) < MAX_KINDS or event.principal in self._kept else ""
        self._kept[who] += 1
        if self._kept[who] <= PER_MINUTE:
            return False
        kind = (event.principal, event.error_code)
        self._left_out[kind if len(self._left_out) < MAX_KINDS else ("", "")] += 1
        return True

    def due(self) -> Counter[tuple[str, str]]:
        """Return the counts of past minutes, which are now to be recorded."""
        if not self._left_out or int(time.monotonic() // 60) == self._minute:
            return Counter()
        counts, self._left_out = self._left_out, Counter()
        return counts

    def rest(self) -> Counter[tuple[str, str]]:
        """Return all remaining counts, at shutdown."""
        counts, self._left_out = self._left_out, Counter()
        return counts
