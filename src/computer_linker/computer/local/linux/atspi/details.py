"""What is asked of single elements after a tree was read: bounds and values of what shows."""

from collections.abc import Sequence

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.computer.local.linux.atspi.bounds import AS_SAID, Extents, Placement, is_window_relative
from computer_linker.computer.local.linux.atspi.halves import unpadded
from computer_linker.computer.local.linux.atspi.names import COMPONENT, PROPERTIES, SELECTION, TEXT, VALUE
from computer_linker.computer.local.linux.atspi.nodes import element_id
from computer_linker.computer.local.linux.atspi.wire import Fault, Request, Wire, get

MAX_VALUE = 500
_INSIDE = frozenset({"label", "filler"})
_BOXES = frozenset({"panel", "filler"})
_AROUND = frozenset({"push-button", "toggle-button", "check-box", "radio-button", "list-item", "menu-item", "page-tab"})
_WRITTEN = frozenset({"text", "entry", "terminal", "spin-button", "autocomplete"})
_PROSE = frozenset(
    {"paragraph", "heading", "section", "list-item", "table-cell", "label", "static", "block-quote", "caption"}
)
_EMBEDDED = "\ufffc"
_MEASURED = frozenset({"slider", "spin-button", "progress-bar", "dial", "level-bar", "scroll-bar"})


def shows(element: Element, app: Application) -> bool:
    """True when it is on the screen as far as its application says. GTK 4 says so only of its windows."""
    return "showing" in element.states or (is_window_relative(app) and "visible" in element.states)


def correct_qt(elements: Sequence[Element], app: Application) -> None:
    """Take `showing` from what lies in something that does not show: Qt says it of the entries of a closed list."""
    if app.toolkit.lower() != "qt":
        return
    is_shown = {one.id: one.role == "application" or "showing" in one.states for one in elements}
    for one in elements:
        if one.parent is not None and not is_shown.get(one.parent, True) and is_shown[one.id]:
            one.states = tuple(state for state in one.states if state != "showing")
            is_shown[one.id] = False


def worth_placing(elements: Sequence[Element], app: Application) -> list[Element]:
    """Those whose place is worth a call. GTK 4 gives every button and row a label of its own, which lies in it, and tells of
    boxes that only hold others."""
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


async def ask_extents(wire: Wire, elements: Sequence[Element], timeout_s: float) -> dict[ElementId, Extents]:
    """The rectangles the toolkit says, in its own coordinates."""
    able = [one for one in elements if "Component" in one.interfaces]
    answers = await wire.ask_all([extents_request(one.id) for one in able], timeout_s)
    found: dict[ElementId, Extents] = {}
    for one, answer in zip(able, answers, strict=True):
        if not isinstance(answer, Fault) and len(answer) == 4:
            found[one.id] = (answer[0], answer[1], answer[2], answer[3])
    return found


def place(
    elements: Sequence[Element],
    extents: dict[ElementId, Extents],
    placements: dict[ElementId, Placement],
    app: Application,
) -> None:
    """Give each element its desktop rectangle; parents come before children in `elements`."""
    inherited: dict[ElementId, Placement] = {}
    for one in elements:
        how = placements.get(one.id) or (inherited.get(one.parent, AS_SAID) if one.parent else AS_SAID)
        inherited[one.id] = how
        said = extents.get(one.id)
        if said is not None:
            one.bounds = how(said)


async def ask_values(
    wire: Wire, elements: Sequence[Element], timeout_s: float, names: dict[ElementId, str] | None = None
) -> None:
    """Fill in the text of input fields, the number of sliders and the choice of combo boxes; never of passwords."""
    asked = [(one, request) for one in elements if (request := _value_request(one)) is not None]
    written = [one for one, request in asked if request.interface == PROPERTIES and request.body[0] == TEXT]
    # The length is asked beside the text: some toolkits answer nothing, or not all, when asked beyond the end.
    texts = [_text_request(one, MAX_VALUE) for one in written]
    answers = await wire.ask_all([*(request for _, request in asked), *texts], timeout_s)
    said = dict(zip((one.id for one in written), answers[len(asked) :], strict=True))
    again: list[tuple[Element, int]] = []
    for (one, request), answer in zip(asked, answers, strict=False):
        if isinstance(answer, Fault):
            continue
        if request.member == "GetSelectedChild":
            chosen = element_id(answer)
            one.value = names.get(chosen) if chosen is not None and names is not None else None
        elif isinstance(answer, float):
            one.value = f"{answer:g}"
        elif isinstance(answer, int):
            text, length = said[one.id], min(answer, MAX_VALUE)
            if isinstance(text, str) and len(text) == length:
                one.value = unpadded(text).replace(_EMBEDDED, "")
            else:
                again.append((one, length))
    await _ask_texts(wire, again, timeout_s)


def _text_request(one: Element, length: int) -> Request:
    return Request(one.id, TEXT, "GetText", "ii", (0, length))


async def _ask_texts(wire: Wire, written: list[tuple[Element, int]], timeout_s: float) -> None:
    requests = [_text_request(one, length) for one, length in written]
    for (one, _length), answer in zip(written, await wire.ask_all(requests, timeout_s), strict=True):
        if isinstance(answer, str):
            one.value = unpadded(answer).replace(_EMBEDDED, "")


def _is_prose(one: Element) -> bool:
    """True for text that is told nowhere else. Firefox and LibreOffice have no elements for the words of a paragraph."""
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
