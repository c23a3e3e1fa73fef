"""An outline of an accessibility tree without uninformative containers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired

from typing_extensions import TypedDict

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.providers.ui.roles import LABELS, PRESSED, STRUCTURAL, TEXTS

_NOISE = frozenset(
    "visible sensitive opaque resizable horizontal vertical single-line selectable-text has-tooltip transient "
    "manages-descendants stale invalid".split()
)
_NAMED_BY_CONTENT = frozenset(
    "list-item tree-item table-cell push-button toggle-button menu-item link page-tab".split()
)
_INTERESTING = frozenset({"focused", "checked", "selected", "editable", "expanded", "checkable"})
_CELL_STATES = frozenset({"focused", "selected"})
"""Every cell of a row has these."""
_HOLDERS = STRUCTURAL | frozenset("frame dialog window table tree tree-table list list-box table-cell".split())
"""Their content is acted on."""
_MAX_VALUE = 500
_JOINERS = "\u200c\u200d"
"""They join letters and emoji, and cannot hide text."""


@dataclass(slots=True)
class Line:
    """One element in an outline. `name` may come from its content when it has none itself."""

    element: Element
    parent: ElementId | None
    depth: int
    name: str
    states: tuple[str, ...]
    is_showing: bool

    @property
    def value(self) -> str | None:
        """Its value with control characters made visible; never a password's."""
        if self.element.value is None or self.element.is_password:
            return None
        return shown_text(self.element.value)

    @property
    def is_empty_cell(self) -> bool:
        """True for a cell of a sheet that is named by its column and row and holds nothing."""
        one = self.element
        return one.role == "table-cell" and one.value == "" and "focused" not in one.states and one.children == 0

    @property
    def actions(self) -> list[str]:
        """What makes sense on it now: press, set_text, set_value, or focus where it can do nothing else."""
        one = self.element
        able: list[str] = []
        if "disabled" in self.states:
            return able
        if one.role in PRESSED and "Action" in one.interfaces:
            able.append("press")
        if "EditableText" in one.interfaces or (one.role in TEXTS and "editable" in one.states):
            able.append("set_text")
        if "Value" in one.interfaces and one.role in ("slider", "spin-button", "dial"):
            able.append("set_value")
        if "focusable" in one.states and not able and one.role not in _HOLDERS:
            able.append("focus")
        return able


def outline(
    app: Application, elements: Sequence[Element], *, compact: bool = True, hidden: bool = True, max_depth: int = 64
) -> tuple[list[Line], bool]:
    """The lines, and whether some were deeper than `max_depth`. Depth counts lines, not the containers left out.

    A label is left out where the field it belongs to carries its text, and so is an empty cell.
    """
    kids: dict[ElementId, list[Element]] = {}
    for one in elements:
        if one.parent is not None:
            kids.setdefault(one.parent, []).append(one)
    root = elements[0]
    labels = frozenset(one.label.removesuffix(":") for one in elements if one.label)
    lines: list[Line] = []
    cut = False
    stack: list[tuple[Element, ElementId | None, int, str]] = [(root, None, 0, "")]
    while stack:
        one, parent, depth, parent_name = stack.pop()
        line = _line(app, one, parent, depth, kids)
        kept = one is root or not compact or _is_informative(line, parent_name, labels)
        below_parent, below_depth, below_name = parent, depth, parent_name
        if kept:
            if not hidden and not line.is_showing and one is not root:
                continue
            if depth > max_depth:
                cut = True
                continue
            lines.append(line)
            below_parent, below_depth, below_name = one.id, depth + 1, line.name
        stack += [(kid, below_parent, below_depth, below_name) for kid in reversed(kids.get(one.id, ()))]
    return lines, cut


def shown_text(text: str, limit: int = _MAX_VALUE, kept: str = "\n\t") -> str:
    """Text cut to a limit, with control and direction characters written out as escapes."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(one if one.isprintable() or one in kept or one in _JOINERS else f"\\u{ord(one):04x}" for one in cut)


def _line(
    app: Application, one: Element, parent: ElementId | None, depth: int, kids: dict[ElementId, list[Element]]
) -> Line:
    is_enabled = "sensitive" in one.states or "enabled" in one.states
    is_showing = "showing" in one.states or (_omits_showing(app) and "visible" in one.states)
    states = [state for state in one.states if state not in _NOISE]
    if is_enabled and "enabled" not in states:
        states.append("enabled")
    if not is_enabled and one.role != "application":
        states.append("disabled")
    if is_showing and "showing" not in states:
        states.append("showing")
    name = one.name or one.label.removesuffix(":")
    if one.role in _NAMED_BY_CONTENT and (not name or _omits_showing(app)):
        content = _content_name(one, kids)
        # GTK 4 repeats the label in such a control's name.
        name = content if not name or name == f"{content} {content}" else name
    return Line(one, parent, depth, shown_text(name, kept=""), tuple(states), is_showing)


def _omits_showing(app: Application) -> bool:
    """True for GTK 4, which reports `showing` only for its windows."""
    return app.toolkit.lower() == "gtk" and app.toolkit_version.startswith("4")


def _content_name(one: Element, kids: dict[ElementId, list[Element]]) -> str:
    words: list[str] = []
    pending = list(reversed(kids.get(one.id, ())))
    while pending and len(words) < 4:
        kid = pending.pop()
        if one.role in PRESSED and kid.role in PRESSED:
            # A button around a button: the inner one is the control.
            return ""
        if one.role == kid.role == "table-cell" and kid.name:
            # One column may draw an icon, a name and more, each as a cell in the cell.
            return kid.name
        if kid.role in LABELS and kid.name:
            words.append(kid.name)
        elif len(kids.get(kid.id, ())) < 20:
            pending += reversed(kids.get(kid.id, ()))
    return " ".join(words)[:200]


def _is_informative(line: Line, parent_name: str, labels: frozenset[str]) -> bool:
    one = line.element
    if one.value and not line.name:
        return True
    if one.role in LABELS:
        return bool(line.name) and line.name != parent_name and line.name.removesuffix(":") not in labels
    if one.role == "table-cell":
        return bool(line.name and line.name != parent_name) or bool(
            _INTERESTING.intersection(one.states) - _CELL_STATES
        )
    if one.role in STRUCTURAL or one.role.startswith("role-"):
        return bool(line.name and line.name != parent_name) or bool(_INTERESTING.intersection(one.states))
    return bool(line.name) or one.role not in ("separator", "image", "icon")


# Elements in wire form: plain dicts, cheap to create by the thousand, without empty fields.


class Bounds(TypedDict):
    x: int
    y: int
    width: int
    height: int


class Node(TypedDict):
    """One element. `ref` is what acts take; `bounds` is in desktop coordinates; empty fields are left out."""

    ref: str
    role: str
    name: str
    states: list[str]
    parent: str | None
    value: NotRequired[str]
    description: NotRequired[str]
    bounds: NotRequired[Bounds]
    actions: NotRequired[list[str]]


def node_of(line: Line, refs: dict[ElementId, str]) -> Node:
    """A line of an outline in wire form."""
    one = line.element
    node: Node = {
        "ref": refs[one.id],
        "role": one.role,
        "name": line.name,
        "states": list(line.states),
        "parent": None if line.parent is None else refs.get(line.parent),
    }
    value, actions, bounds = line.value, line.actions, one.bounds
    if value is not None:
        node["value"] = value
    if one.description:
        node["description"] = one.description[:200]
    if bounds is not None:
        node["bounds"] = {"x": bounds.x, "y": bounds.y, "width": bounds.width, "height": bounds.height}
    if actions:
        node["actions"] = actions
    return node
