"""Single elements and their ancestors, queried together where the ancestors are known from before."""

from collections.abc import Iterable, Sequence
from typing import Any

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.computer.local.linux.atspi.names import (
    ACCESSIBLE,
    interface_names,
    role_name,
    state_bits,
    state_names,
)
from computer_linker.computer.local.linux.atspi.nodes import element_id, shown_name
from computer_linker.computer.local.linux.atspi.wire import Fault, Request, Wire, fault_error, get
from computer_linker.errors import ElementNotFound, LinkError

_MAX_ABOVE = 64
_MAX_KNOWN = 20_000
_ANSWER_S = 3.0


async def describe(wire: Wire, at: ElementId) -> Element:
    """One element as it is now, without bounds and value."""
    return (await _lineage(wire, at, ()))[0]


class Lineages:
    """Which element was whose parent: a guess that saves a round trip for each ancestor, checked with every use."""

    def __init__(self) -> None:
        self._parents: dict[ElementId, ElementId] = {}

    def learn(self, elements: Iterable[Element]) -> None:
        """Remember the parents of these."""
        if len(self._parents) > _MAX_KNOWN:
            self._parents.clear()
        self._parents.update((one.id, one.parent) for one in elements if one.parent is not None)

    async def climb(self, wire: Wire, app: Application, at: ElementId) -> list[Element]:
        """The ancestors of an element, nearest first, its window last."""
        found: list[Element] = []
        above: ElementId | None = at
        while above is not None and above != app.root and len(found) <= _MAX_ABOVE:
            found += await _lineage(wire, above, self._guess(app, above))
            above = found[-1].parent
        self.learn(found)
        return found[1:]

    def _guess(self, app: Application, at: ElementId) -> list[ElementId]:
        found: list[ElementId] = []
        above = self._parents.get(at)
        while above is not None and above != app.root and len(found) < _MAX_ABOVE:
            found.append(above)
            above = self._parents.get(above)
        return found


async def _lineage(wire: Wire, at: ElementId, above: Sequence[ElementId]) -> list[Element]:
    """The element, and of the guessed ancestors those that are."""
    ats = [at, *above]
    requests = [request for one in ats for request in _requests(one)]
    answers: list[Any] = await wire.call_all(requests, _ANSWER_S)
    size = len(requests) // len(ats)
    described = [_element(one, answers[place * size : (place + 1) * size]) for place, one in enumerate(ats)]
    found: list[Element] = []
    for one in described:
        if not found and isinstance(one, LinkError):
            raise one
        if isinstance(one, LinkError) or (found and one.id != found[-1].parent):
            break
        found.append(one)
    return found


def _requests(at: ElementId) -> list[Request]:
    return [
        Request(at, ACCESSIBLE, "GetRole"),
        Request(at, ACCESSIBLE, "GetState"),
        get(at, ACCESSIBLE, "Name"),
        Request(at, ACCESSIBLE, "GetInterfaces"),
        get(at, ACCESSIBLE, "Parent"),
        get(at, ACCESSIBLE, "ChildCount"),
        Request(at, ACCESSIBLE, "GetIndexInParent"),
    ]


def _element(at: ElementId, answers: Sequence[Any]) -> Element | LinkError:
    for request, answer in zip(_requests(at)[:3], answers[:3], strict=True):
        if isinstance(answer, Fault):
            return fault_error(answer, request)
    role, words, name, interfaces, parent, count, index = answers
    states = state_names(state_bits(words))
    if "defunct" in states or role_name(role) == "invalid":
        return ElementNotFound("The element is gone.")
    return Element(
        at,
        None if isinstance(parent, Fault) else element_id(parent),
        role_name(role),
        shown_name(name),
        states,
        frozenset() if isinstance(interfaces, Fault) else interface_names(tuple(interfaces)),
        children=count if isinstance(count, int) else 0,
        index=index if isinstance(index, int) else -1,
    )
