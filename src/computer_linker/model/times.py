"""Times as the wire has them, UTC to the millisecond, and as people read them, in the local time."""

import calendar
import time

_SECONDS: dict[int, str] = {}


def shown_ns(nanoseconds: int) -> str:
    """A time given in nanoseconds since 1970, such as 2026-01-31T10:00:00.123Z."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    shown = _SECONDS.get(seconds)
    if shown is None:
        if len(_SECONDS) > 4096:
            _SECONDS.clear()
        year, month, day, hour, minute, second = time.gmtime(seconds)[:6]
        shown = _SECONDS[seconds] = f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}"
    return f"{shown}.{rest // 1_000_000:03d}Z"


def shown_s(seconds: float) -> str:
    """A time given in seconds since 1970, to the second."""
    return shown_ns(int(seconds) * 1_000_000_000)[:19] + "Z"


def local(at: str) -> str:
    """A time of the wire as a person here reads it, such as 2026-01-31 11:00:00."""
    moment = time.localtime(calendar.timegm(time.strptime(at[:19], "%Y-%m-%dT%H:%M:%S")))
    return time.strftime("%Y-%m-%d %H:%M:%S", moment)
