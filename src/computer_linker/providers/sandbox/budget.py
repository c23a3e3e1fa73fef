"""Chooses whole folders to close when a root holds more closed names than one command can have mounts.

A folder that holds too many of them is closed whole: read-only where that is enough, hidden where it holds too many
secrets. Nothing is left open, and as little as possible is closed: of several attempts the one whose folders lie deepest.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from computer_linker.providers.sandbox.judge import Parts
from computer_linker.providers.sandbox.pace import Pace

ClosedFolders = dict[Parts, Literal["read_only", "hidden"]]
_STEPS = (2, 4, 16)


@dataclass(slots=True)
class _Node:
    """A name, and how it is closed."""

    below: dict[str, "_Node"] = field(default_factory=dict)
    how: Literal["read_only", "hidden"] | None = None


def escalated(closed: Iterable[tuple[Parts, bool]], most: int) -> ClosedFolders:
    """The folders to close whole, so that `most` mounts are enough. `closed` has each name and whether it is hidden."""
    pace, top, attempts = Pace(), _Node(), []
    for parts, is_hidden in closed:
        pace.step()
        node = top
        for name in parts:
            node = node.below.setdefault(name, _Node())
        node.how = "hidden" if is_hidden else "read_only"
    for step in _STEPS:
        attempt = _Escalation(max(1, most // step), pace)
        attempt.close_overfull(top, ())
        attempts.append(attempt.whole)
    return max(attempts, key=lambda whole: (min(map(len, whole), default=0), -len(whole)))


class _Escalation:
    """One attempt to stay within the limit: closes folders that need more mounts whole, the deepest first."""

    def __init__(self, limit: int, pace: Pace) -> None:
        self._limit = limit
        self._pace = pace
        self.whole: ClosedFolders = {}

    def close_overfull(self, node: _Node, parts: Parts) -> tuple[int, int]:
        """Close overfull folders. Returns the mounts that this node and its descendants need, and how many of them hide."""
        self._pace.step()
        mounts = hidden = 0
        for name, below in node.below.items():
            more_mounts, more_hidden = (
                self.close_overfull(below, (*parts, name)) if below.below else (1, below.how == "hidden")
            )
            mounts, hidden = mounts + more_mounts, hidden + more_hidden
        hidden += node.how == "hidden"
        # A read-only mount covers everything below it.
        mounts = 1 + hidden if node.how == "read_only" else mounts + bool(parts)
        if mounts <= self._limit:
            return mounts, hidden
        is_hidden = 1 + hidden > self._limit
        for inner in [inner for inner in self.whole if inner[: len(parts)] == parts]:
            if is_hidden or self.whole[inner] == "read_only":
                del self.whole[inner]
        self.whole[parts] = "hidden" if is_hidden else "read_only"
        return (1, 1) if is_hidden else (1 + hidden, hidden)
