"""The HTTP server's own log, kept from being filled by whoever sends rubbish: a few lines of a kind a minute, then a count."""

import logging
import time

_PER_MINUTE = 5


class FewOfAKind(logging.Filter):
    """Lets the first lines of each kind through in every minute; the first of a later minute says how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._minute = 0
        self._seen: dict[str, int] = {}
        self._left_out: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._seen = minute, {}
        kind = str(record.msg)
        count = self._seen[kind] = self._seen.get(kind, 0) + 1
        if count > _PER_MINUTE and record.levelno < logging.ERROR:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        left_out = self._left_out.pop(kind, 0)
        if left_out:
            record.msg = f"{kind} ({left_out} more before it)"
        return True


def keep_short() -> None:
    """Put the filter on the HTTP server's log, once."""
    log = logging.getLogger("uvicorn.error")
    if not any(isinstance(found, FewOfAKind) for found in log.filters):
        log.addFilter(FewOfAKind())
