"""Querying single elements with pipelined calls; properties that cannot change are cached."""

from collections.abc import Sequence
from typing import NamedTuple

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.computer.local.linux.atspi.names import (
    ACCESSIBLE,
    DEFUNCT,
    interface_names,
    role_name,
    state_bits,
    state_names,
)
from computer_linker.computer.local.linux.atspi.nodes import implied_interfaces, shown_name
from computer_linker.computer.local.linux.atspi.wire import Fault, Request, Wire, get

MAX_REMEMBERED = 20_000
_QT_LEAVES = frozenset(
    "label push-button check-box radio-button table-cell table-row-header table-column-header list-item separator image "
    "icon slider static".split()
)
_LEAVES = frozenset({"label", "static", "separator"})
_REUSES_PATHS = frozenset({"gecko"})

Start = tuple[ElementId, ElementId | None, int]
"""An element to query, its parent and its index among the parent's children."""


class Fixed(NamedTuple):
    """The properties that do not change during an element's life."""

    role: str
    interfaces: frozenset[str]


class Memory:
    """The fixed properties of each application's elements. No toolkit but Gecko reuses an object path."""

    def __init__(self) -> None:
        self._apps: dict[str, dict[ElementId, Fixed]] = {}

    def of(self, app: Application) -> dict[ElementId, Fixed]:
        """The cache of one application's elements; writes into it are stored."""
        if app.toolkit.lower() in _REUSES_PATHS:
            return {}
        known = self._apps.setdefault(app.id, {})
        if len(known) > MAX_REMEMBERED:
            known.clear()
        return known

    def keep_only(self, apps: Sequence[Application]) -> None:
        """Forget applications that are gone."""
        present = {app.id for app in apps}
        self._apps = {name: known for name, known in self._apps.items() if name in present}


async def query_elements(
    wire: Wire, app: Application, known: dict[ElementId, Fixed], level: Sequence[Start], timeout_s: float
) -> tuple[list[Element], bool]:
    """Query the elements: those that answered, and whether some did not in time."""
    is_qt = app.toolkit.lower() == "qt"
    wanted = [_wanted(known.get(at), is_qt) for at, _parent, _index in level]
    requests = [_REQUESTS[what](start[0]) for start, whats in zip(level, wanted, strict=True) for what in whats]
    answers = await wire.call_all(requests, timeout_s)
    found: list[Element] = []
    is_late = False
    place = 0
    for start, whats in zip(level, wanted, strict=True):
        said = dict(zip(whats, answers[place : place + len(whats)], strict=True))
        place += len(whats)
        is_late = is_late or any(isinstance(one, Fault) and one.name == "timeout" for one in said.values())
        element = _element(start, said, known, is_qt)
        if element is not None:
            found.append(element)
    return found, is_late


_REQUESTS = {
    "role": lambda at: Request(at, ACCESSIBLE, "GetRole"),
    "states": lambda at: Request(at, ACCESSIBLE, "GetState"),
    "name": lambda at: get(at, ACCESSIBLE, "Name"),
    "interfaces": lambda at: Request(at, ACCESSIBLE, "GetInterfaces"),
    "count": lambda at: get(at, ACCESSIBLE, "ChildCount"),
}


def _wanted(fixed: Fixed | None, is_qt: bool) -> tuple[str, ...]:
    if is_qt:
        return ("states", "name") if fixed is not None else ("states", "name", "role")
    if fixed is None:
        return ("states", "name", "role", "interfaces", "count")
    return ("states", "name") if fixed.role in _LEAVES else ("states", "name", "count")


def _element(start: Start, said: dict[str, object], known: dict[ElementId, Fixed], is_qt: bool) -> Element | None:
    at, parent, index = start
    words, name = said["states"], said["name"]
    if not isinstance(words, list) or not isinstance(name, str):
        return None
    bits = state_bits(words)
    if bits & DEFUNCT:
        known.pop(at, None)
        return None
    states = state_names(bits)
    fixed = known.get(at) or _learn(at, said, known, is_qt)
    if fixed is None:
        return None
    count = said.get("count", 0)
    if is_qt:
        # Whether they have children is not known yet; leaf widgets never do.
        count = 0 if fixed.role in _QT_LEAVES else 1
    number = count if isinstance(count, int) else 0
    interfaces = implied_interfaces(fixed.role, states) if is_qt else fixed.interfaces
    return Element(at, parent, fixed.role, shown_name(name), states, interfaces, children=number, index=index)


def _learn(at: ElementId, said: dict[str, object], known: dict[ElementId, Fixed], is_qt: bool) -> Fixed | None:
    role, interfaces = said.get("role"), said.get("interfaces")
    if not isinstance(role, int):
        return None
    names = interface_names(tuple(interfaces)) if isinstance(interfaces, list) else frozenset[str]()
    fixed = Fixed(role_name(role), names)
    if is_qt or names:
        known[at] = fixed
    return fixed
