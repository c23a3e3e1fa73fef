"""Queries of single elements after a tree was read: bounds and values of visible elements."""

from collections.abc import Sequence

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.computer.local.linux.atspi.names import ACCESSIBLE, COMPONENT, PROPERTIES, SELECTION, TEXT, VALUE
from computer_linker.computer.local.linux.atspi.nodes import element_id, unpadded
from computer_linker.computer.local.linux.atspi.places import AS_SAID, Extents, Placement, is_window_relative
from computer_linker.computer.local.linux.atspi.wire import Fault, Request, Wire, get

MAX_VALUE = 500
MAX_LABEL = 200
_LABELLED_BY = 2
"""ATSPI_RELATION_LABELLED_BY."""
_LABELLED = frozenset({"text", "entry", "password-text", "spin-button", "combo-box", "slider", "autocomplete"})
_INSIDE = frozenset({"label", "filler"})
_BOXES = frozenset({"panel", "filler"})
_AROUND = frozenset({"push-button", "toggle-button", "check-box", "radio-button", "list-item", "menu-item", "page-tab"})
_WRITTEN = frozenset({"text", "entry", "terminal", "spin-button", "autocomplete"})
_PROSE = frozenset(
    {"paragraph", "heading", "section", "list-item", "table-cell", "label", "static", "block-quote", "caption"}
)
_EMBEDDED = "\ufffc"
_MEASURED = frozenset({"slider", "spin-button", "progress-bar", "dial", "level-bar", "scroll-bar"})
_FIRST_ROWS = 8
_ROWS = frozenset({"list-item", "table-row", "tree-item"})
_UP_TO_PANE = 5


def shows(element: Element, app: Application) -> bool:
    """True when its application reports it as showing. GTK 4 sets this state only on its windows."""
    return "showing" in element.states or (is_window_relative(app) and "visible" in element.states)


def correct_qt(elements: Sequence[Element], app: Application) -> None:
    """Clear `showing` of elements in a parent that is not showing: Qt sets it on the entries of a closed list."""
    if app.toolkit.lower() != "qt":
        return
    is_shown = {one.id: one.role == "application" or "showing" in one.states for one in elements}
    for one in elements:
        if one.parent is not None and not is_shown.get(one.parent, True) and is_shown[one.id]:
            one.states = tuple(state for state in one.states if state != "showing")
            is_shown[one.id] = False


def worth_placing(elements: Sequence[Element], app: Application) -> list[Element]:
    """The elements whose bounds are worth a call: not GTK 4's labels inside buttons and rows, nor its layout boxes."""
    if not is_window_relative(app):
        return list(elements)
    roles = {one.id: one.role for one in elements}
    return [
        one
        for one in elements
        if (one.name or one.role not in _BOXES)
        and (one.role not in _INSIDE or one.parent is None or roles.get(one.parent) not in _AROUND)
    ]


def extents_request(at: ElementId) -> Request:
    return Request(at, COMPONENT, "GetExtents", "u", (0,))


async def query_extents(wire: Wire, elements: Sequence[Element], timeout_s: float) -> dict[ElementId, Extents]:
    """Query the rectangles from the toolkit, in its own coordinates."""
    able = [one for one in elements if "Component" in one.interfaces]
    answers = await wire.call_all([extents_request(one.id) for one in able], timeout_s)
    found: dict[ElementId, Extents] = {}
    for one, answer in zip(able, answers, strict=True):
        if not isinstance(answer, Fault) and len(answer) == 4:
            found[one.id] = (answer[0], answer[1], answer[2], answer[3])
    return found


def place(
    elements: Sequence[Element],
    extents: dict[ElementId, Extents],
    placements: dict[ElementId, Placement],
) -> None:
    """Give each element its desktop rectangle; parents come before children in `elements`."""
    inherited: dict[ElementId, Placement] = {}
    for one in elements:
        how = placements.get(one.id) or (inherited.get(one.parent, AS_SAID) if one.parent else AS_SAID)
        inherited[one.id] = how
        extent = extents.get(one.id)
        if extent is not None:
            one.bounds = how(extent)


async def query_values(
    wire: Wire, elements: Sequence[Element], timeout_s: float, names: dict[ElementId, str] | None = None
) -> None:
    """Fill in the text of input fields, the number of sliders and the choice of combo boxes; never of passwords."""
    requests = [(one, request) for one in elements if (request := _value_request(one)) is not None]
    written = [one for one, request in requests if request.interface == PROPERTIES and request.body[0] == TEXT]
    # The length is requested beside the text: some toolkits return nothing, or too little, for a range beyond the end.
    texts = [_text_request(one, MAX_VALUE) for one in written]
    answers = await wire.call_all([*(request for _, request in requests), *texts], timeout_s)
    texts_read = dict(zip((one.id for one in written), answers[len(requests) :], strict=True))
    again: list[tuple[Element, int]] = []
    for (one, request), answer in zip(requests, answers, strict=False):
        if isinstance(answer, Fault):
            continue
        if request.member == "GetSelectedChild":
            chosen = element_id(answer)
            one.value = names.get(chosen) if chosen is not None and names is not None else None
        elif isinstance(answer, float):
            one.value = f"{answer:g}"
        elif isinstance(answer, int):
            text, length = texts_read[one.id], min(answer, MAX_VALUE)
            if isinstance(text, str) and len(text) == length:
                one.value = unpadded(text).replace(_EMBEDDED, "")
            else:
                again.append((one, length))
    await _query_texts(wire, again, timeout_s)


async def query_labels(wire: Wire, elements: Sequence[Element], timeout_s: float) -> None:
    """Fill in the labels of fields without a name."""
    fields = [one for one in elements if not one.name and one.role in _LABELLED]
    answers = await wire.call_all([Request(one.id, ACCESSIBLE, "GetRelationSet") for one in fields], timeout_s)
    found = {
        one.id: at
        for one, answer in zip(fields, answers, strict=True)
        for kind, targets in ([] if isinstance(answer, Fault) else answer)
        if kind == _LABELLED_BY and targets and (at := element_id(targets[0])) is not None
    }
    names = await wire.call_all([get(at, ACCESSIBLE, "Name") for at in found.values()], timeout_s)
    labels = {at: name for at, name in zip(found, names, strict=True) if isinstance(name, str)}
    for one in fields:
        one.label = labels.get(one.id, "")[:MAX_LABEL]


def _text_request(one: Element, length: int) -> Request:
    return Request(one.id, TEXT, "GetText", "ii", (0, length))


async def _query_texts(wire: Wire, written: list[tuple[Element, int]], timeout_s: float) -> None:
    requests = [_text_request(one, length) for one, length in written]
    for (one, _length), answer in zip(written, await wire.call_all(requests, timeout_s), strict=True):
        if isinstance(answer, str):
            one.value = unpadded(answer).replace(_EMBEDDED, "")


def _is_prose(one: Element) -> bool:
    """True for text that no child element carries: Firefox and LibreOffice have no elements for a paragraph's text."""
    return one.role in _PROSE and not one.name and one.children == 0


def _value_request(one: Element) -> Request | None:
    if one.is_password:
        return None
    if one.role in _MEASURED and "Value" in one.interfaces:
        return get(one.id, VALUE, "CurrentValue")
    if "Text" in one.interfaces and (one.role in _WRITTEN or "editable" in one.states or _is_prose(one)):
        return get(one.id, TEXT, "CharacterCount")
    if one.role == "combo-box" and "Selection" in one.interfaces:
        return Request(one.id, SELECTION, "GetSelectedChild", "i", (0,))
    return None


class LongLists:
    """The rows of long lists in GTK 4, which marks every row visible: off-screen rows need no bounds query."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self._by_id = {one.id: one for one in elements}
        self._rows: dict[ElementId, list[Element]] = {}
        for one in elements:
            if one.role in _ROWS and one.parent is not None:
                self._rows.setdefault(one.parent, []).append(one)
        self._rows = {
            at: rows for at, rows in self._rows.items() if len(rows) > _FIRST_ROWS and self._pane(at) is not None
        }
        self._later = {row.id for rows in self._rows.values() for row in rows[_FIRST_ROWS:]}

    def first(self, elements: Sequence[Element]) -> list[Element]:
        """All but the later rows."""
        return [one for one in elements if one.id not in self._later]

    def then(self, extents: dict[ElementId, Extents]) -> list[Element]:
        """The later rows of lists whose first rows end inside the visible part of the list."""
        return [
            row
            for at, rows in self._rows.items()
            if not self._is_beyond(at, rows, extents)
            for row in rows[_FIRST_ROWS:]
        ]

    def _is_beyond(self, at: ElementId, rows: list[Element], extents: dict[ElementId, Extents]) -> bool:
        last, pane = extents.get(rows[_FIRST_ROWS - 1].id), extents.get(self._pane(at) or at)
        return last is not None and pane is not None and last[1] >= pane[1] + pane[3]

    def _pane(self, at: ElementId) -> ElementId | None:
        for _ in range(_UP_TO_PANE):
            one = self._by_id.get(at)
            if one is None or one.parent is None:
                return None
            if one.role == "scroll-pane":
                return one.id
            at = one.parent
        return None
