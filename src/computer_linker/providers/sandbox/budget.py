"""Budget: what to close instead when a root holds more closed names than one command can have mounts for.

A folder that holds too many of them is closed whole: read-only where that is enough, hidden where it holds too many
secrets. Nothing is left open, and as little as possible is closed: of several ways the one whose folders lie deepest.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from computer_linker.providers.sandbox.judge import Parts

Whole = dict[Parts, Literal["read_only", "hidden"]]
_STEPS = (2, 4, 16)


@dataclass(slots=True)
class _Place:
    """A name, how many mounts it and what lies below it need, and how many of those hide something."""

    below: dict[str, "_Place"] = field(default_factory=dict)
    how: Literal["read_only", "hidden"] | None = None
    mounts: int = 0
    hidden: int = 0


def escalated(closed: Iterable[tuple[Parts, bool]], most: int) -> Whole:
    """The folders to close whole, so that `most` mounts are enough. `closed` says of each name whether it is hidden."""
    known, ways = list(closed), []
    for step in _STEPS:
        whole: Whole = {}
        _close_crowded(_placed(known), (), max(1, most // step), whole)
        ways.append(whole)
    return max(ways, key=lambda whole: (min(map(len, whole), default=0), -len(whole)))


def _placed(closed: Iterable[tuple[Parts, bool]]) -> _Place:
    top = _Place()
    for parts, is_hidden in closed:
        place = top
        for name in parts:
            place = place.below.setdefault(name, _Place())
        place.how = "hidden" if is_hidden else "read_only"
    return top


def _close_crowded(place: _Place, parts: Parts, limit: int, whole: Whole) -> None:
    """Close whole, deepest first, every folder that needs more mounts than the limit."""
    for name, below in place.below.items():
        _close_crowded(below, (*parts, name), limit, whole)
    place.hidden = sum(below.hidden for below in place.below.values()) + (place.how == "hidden")
    if place.how == "read_only":
        # What lies in it is read-only with it.
        place.mounts = 1 + place.hidden
    else:
        place.mounts = sum(below.mounts for below in place.below.values()) + bool(parts)
    if not place.below or place.mounts <= limit:
        return
    is_hidden = 1 + place.hidden > limit
    whole[parts] = "hidden" if is_hidden else "read_only"
    for inner in [inner for inner in whole if len(inner) > len(parts) and inner[: len(parts)] == parts]:
        if is_hidden or whole[inner] == "read_only":
            del whole[inner]
    place.mounts, place.hidden = (1, 1) if is_hidden else (1 + place.hidden, place.hidden)
