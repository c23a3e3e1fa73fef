"""The similarity of an element to one seen before: a score from 0 to 1."""

from collections import Counter
from itertools import pairwise

from computer_linker.computer.facets.accessibility import Element, ElementId
from computer_linker.model.geometry import Rect

ENOUGH = 0.5
"""The lowest score of a successor that is offered."""
_ROLE, _NAME, _PATH, _TRAIL, _PLACE = 0.25, 0.35, 0.15, 0.1, 0.15
Trail = tuple[str, ...]


def likeness(
    seen: Element,
    seen_trail: Trail,
    now: Element,
    now_trail: Trail,
    *,
    seen_window: Rect | None,
    now_window: Rect | None,
) -> float:
    """The score of `now` as the successor of `seen`."""
    score = _ROLE * (seen.role == now.role) + _NAME * _name(seen.name, now.name)
    score += _PATH * (_path(seen.id) == _path(now.id))
    score += _TRAIL * _trail(seen_trail, now_trail)
    score += _PLACE * _place(relative(seen.bounds, seen_window), relative(now.bounds, now_window))
    return round(score, 3)


def relative(bounds: Rect | None, window: Rect | None) -> Rect | None:
    """A rectangle relative to its window, so that moving the window changes nothing."""
    return bounds if bounds is None or window is None else bounds.moved(-window.x, -window.y)


def _path(at: ElementId) -> str:
    return at.path


def _name(seen: str, now: str) -> float:
    if seen == now:
        return 1.0
    if not seen or not now:
        return 0.0
    # By the pairs of neighbouring letters: names are chosen by pages, and to align letters takes a tenth of a second of
    # the worst, for each of thousands of elements.
    one, other = _pairs(seen[:200]), _pairs(now[:200])
    return 0.7 * 2 * (one & other).total() / (one.total() + other.total())


def _pairs(name: str) -> Counter[tuple[str, str]]:
    return Counter(pairwise(f"\n{name}\n"))


def _trail(seen: Trail, now: Trail) -> float:
    if not seen or not now:
        return 0.0
    shared = sum(1 for one, other in zip(seen, now, strict=False) if one == other)
    return shared / max(len(seen), len(now))


def _place(seen: Rect | None, now: Rect | None) -> float:
    if seen is None or now is None:
        return 0.0
    shared = seen.intersection(now)
    both = seen.width * seen.height + now.width * now.height - shared.width * shared.height
    return shared.width * shared.height / both if both else 0.0
