"""Budget: what to close instead when a root holds more closed names than one command can have mounts for.

A folder that holds too many of them is closed whole: read-only where that is enough, hidden where it holds too many
secrets. Nothing is left open, and as little as possible is closed: of several ways the one whose folders lie deepest.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from computer_linker.providers.sandbox.judge import Parts
from computer_linker.providers.sandbox.pace import Pace

Whole = dict[Parts, Literal["read_only", "hidden"]]
_STEPS = (2, 4, 16)


@dataclass(slots=True)
class _Place:
    """A name, and how it is closed."""

    below: dict[str, "_Place"] = field(default_factory=dict)
    how: Literal["read_only", "hidden"] | None = None


def escalated(closed: Iterable[tuple[Parts, bool]], most: int) -> Whole:
    """The folders to close whole, so that `most` mounts are enough. `closed` says of each name whether it is hidden."""
    pace, top, ways = Pace(), _Place(), []
    for parts, is_hidden in closed:
        pace.step()
        place = top
        for name in parts:
            place = place.below.setdefault(name, _Place())
        place.how = "hidden" if is_hidden else "read_only"
    for step in _STEPS:
        way = _Way(max(1, most // step), pace)
        way.close_crowded(top, ())
        ways.append(way.whole)
    return max(ways, key=lambda whole: (min(map(len, whole), default=0), -len(whole)))


class _Way:
    """One way to stay within the limit: a folder that needs more mounts is closed whole, the deepest first."""

    def __init__(self, limit: int, pace: Pace) -> None:
        self._limit = limit
        self._pace = pace
        self.whole: Whole = {}

    def close_crowded(self, place: _Place, parts: Parts) -> tuple[int, int]:
        """How many mounts the name and what lies below it need then, and how many of those hide something."""
        self._pace.step()
        mounts = hidden = 0
        for name, below in place.below.items():
            more_mounts, more_hidden = (
                self.close_crowded(below, (*parts, name)) if below.below else (1, below.how == "hidden")
            )
            mounts, hidden = mounts + more_mounts, hidden + more_hidden
        hidden += place.how == "hidden"
        # What lies in a read-only folder is read-only with it.
        mounts = 1 + hidden if place.how == "read_only" else mounts + bool(parts)
        if mounts <= self._limit:
            return mounts, hidden
        is_hidden = 1 + hidden > self._limit
        for inner in [inner for inner in self.whole if inner[: len(parts)] == parts]:
            if is_hidden or self.whole[inner] == "read_only":
                del self.whole[inner]
        self.whole[parts] = "hidden" if is_hidden else "read_only"
        return (1, 1) if is_hidden else (1 + hidden, hidden)
