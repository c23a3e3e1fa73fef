"""The references issued by this service, bounded in number."""

import secrets
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import Application, Element, ElementId, TreeLimits
from computer_linker.errors import ElementNotFound, LinkError, StaleReference
from computer_linker.model.geometry import Rect
from computer_linker.services import Services

# The similarity of an element to one seen before: a score from 0 to 1.

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


MAX_REFERENCES = 50_000
_MAX_TRAIL = 6
_TITLED = frozenset(
    {"frame", "dialog", "window", "alert", "document-web", "document-frame", "document-text", "application"}
)
"""Their names are titles, which may change without a change of identity."""

_Key = tuple[str, ElementId, str, str]


@dataclass(slots=True)
class Reference:
    """The target of a reference: the element when last seen, its window and its ancestors."""

    ref: str
    scope: str
    element: Element
    app_name: str
    window: Element | None
    trail: Trail


class References:
    """Issues references: a stable one for each element, never reused for another."""

    def __init__(self) -> None:
        self._series = "".join(secrets.choice("abcdefghjkmnpqrstvwxyz23456789") for _ in range(4))
        self._count = 0
        self._by_ref: OrderedDict[str, Reference] = OrderedDict()
        self._by_key: dict[_Key, str] = {}

    @classmethod
    def open(cls, services: Services) -> Self:
        return cls()

    def give(
        self, scope: str, app: Application, elements: Sequence[Element], *, from_window: bool = True
    ) -> dict[ElementId, str]:
        """References for elements in reading order, parents before children.

        `from_window=False` means that they begin below their window, which is then unknown.
        """
        by_id = {one.id: one for one in elements}
        trails: dict[ElementId, Trail] = {}
        windows: dict[ElementId, Element | None] = {}
        refs: dict[ElementId, str] = {}
        for one in elements:
            above = by_id.get(one.parent) if one.parent is not None else None
            if above is None or above.role == "application":
                is_window = from_window and one.role != "application"
                trails[one.id], windows[one.id] = (), one if is_window else None
            else:
                trails[one.id] = (*trails[above.id], f"{above.role} {above.name[:40]}")[-_MAX_TRAIL:]
                windows[one.id] = windows[above.id]
            refs[one.id] = self._give(scope, app, one, windows[one.id], trails[one.id])
        return refs

    def find(self, scope: str, ref: str) -> Reference:
        """The target of a reference, in the scope it was issued in."""
        found = self._by_ref.get(ref)
        if found is None or found.scope != scope:
            raise StaleReference(
                "There is no such reference, or it is too old. Look again with ui.tree or desktop.find.",
                ref=ref[:40],
                best=None,
            )
        self._by_ref.move_to_end(ref)
        return found

    async def resolve(self, scope: str, ref: str, computer: Computer) -> tuple[Reference, Element]:
        """The reference and its present element.

        Raises:
            StaleReference: the element is gone or different by now; the details offer the likeliest successor.
        """
        found = self.find(scope, ref)
        try:
            now = await computer.accessibility.element(found.element.id)
        except ElementNotFound:
            raise await self._stale(found, computer, "it is gone") from None
        why = difference(found, now)
        if why:
            raise await self._stale(found, computer, why)
        return found, now

    async def _stale(self, found: Reference, computer: Computer, why: str) -> StaleReference:
        best = await self._successor(found, computer)
        help_ = "Look again with ui.tree or desktop.find." if best is None else "Is the one in `best` what you mean?"
        return StaleReference(f"The reference no longer holds: {why}. {help_}", ref=found.ref, reason=why, best=best)

    async def _successor(self, found: Reference, computer: Computer) -> Mapping[str, Any] | None:
        try:
            app = await _same_app(found, computer)
            if app is None:
                return None
            tree = await computer.accessibility.tree(app.root, TreeLimits(max_nodes=4_000, time_s=2.0, values=False))
        except LinkError:
            return None
        refs = self.give(found.scope, app, tree.elements)
        best, score = None, 0.0
        for one in tree.elements:
            known = self._by_ref[refs[one.id]]
            if refs[one.id] == found.ref:
                continue
            how = likeness(
                found.element, found.trail, one, known.trail,
                seen_window=_bounds(found.window), now_window=_bounds(known.window),
            )  # fmt: skip
            if how > score:
                best, score = one, how
        if best is None or score < ENOUGH:
            return None
        bounds = None if best.bounds is None else best.bounds.to_wire()
        return {"ref": refs[best.id], "role": best.role, "name": best.name, "bounds": bounds, "score": score}

    def _give(self, scope: str, app: Application, one: Element, window: Element | None, trail: Trail) -> str:
        key = _key(scope, one)
        ref = self._by_key.get(key)
        known = self._by_ref.get(ref) if ref is not None else None
        if ref is None or known is None or difference(known, one, window):
            self._count += 1
            ref = f"e{self._count}.{self._series}"
            self._by_key[key] = ref
            known = None
        if known is None or one.bounds is not None:
            # A read without bounds must not erase the known position.
            self._by_ref[ref] = Reference(ref, scope, one, app.name, window, trail)
        self._by_ref.move_to_end(ref)
        while len(self._by_ref) > MAX_REFERENCES:
            _old, dropped = self._by_ref.popitem(last=False)
            self._by_key.pop(_key(dropped.scope, dropped.element), None)
        return ref


def difference(seen: Reference, now: Element, window: Element | None = None) -> str:
    """The reason `now` is not the same element; empty when it is."""
    before = seen.element
    if now.role != before.role:
        return f"it was a {before.role} and is a {now.role} now"
    if now.role not in _TITLED and now.name != before.name:
        return "its name has changed"
    if not now.name and _moved_and_resized(before.bounds, now.bounds, _bounds(seen.window), window):
        return "it has no name, and both its place and its size have changed"
    return ""


def _moved_and_resized(before: Rect | None, now: Rect | None, seen_window: Rect | None, window: Element | None) -> bool:
    if before is None or now is None:
        return False
    size = (before.width, before.height) == (now.width, now.height)
    was = relative(before, seen_window if window is not None else None)
    is_ = relative(now, window.bounds if window is not None else None)
    return not size and was is not None and is_ is not None and (was.x, was.y) != (is_.x, is_.y)


def _bounds(window: Element | None) -> Rect | None:
    return None if window is None else window.bounds


def _key(scope: str, one: Element) -> _Key:
    return scope, one.id, one.role, "" if one.role in _TITLED else one.name


async def _same_app(found: Reference, computer: Computer) -> Application | None:
    apps = await computer.accessibility.applications()
    same = [app for app in apps if app.id == found.element.id.app]
    return next(iter(same or [app for app in apps if app.name == found.app_name]), None)
