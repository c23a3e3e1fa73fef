"""Elements in wire form: plain dicts, cheap to create by the thousand, without empty fields."""

from typing import NotRequired

from typing_extensions import TypedDict

from computer_linker.computer.facets.accessibility import ElementId
from computer_linker.providers.ui.outline import Line


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
