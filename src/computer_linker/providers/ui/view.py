"""Reads an application or window: its outline with references, and the elements that match a selector."""

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AliasChoices, Field, model_validator

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import ElementId, Limit, TreeLimits
from computer_linker.errors import Conflict, ElementNotFound
from computer_linker.model.base import Model
from computer_linker.model.scope import Scope
from computer_linker.providers.refs import References
from computer_linker.providers.ui.outline import Line, Node, node_of, outline
from computer_linker.providers.ui.roles import roles_called
from computer_linker.providers.ui.route import Route, WindowRoute, follow

# Selectors: match elements by role, name, value and state.

Text = Annotated[str, Field(min_length=1, max_length=500)]


class Selector(Model):
    """Conditions on an element, at least one; texts are compared case-insensitively."""

    role: Annotated[
        Text | None,
        Field(
            validation_alias=AliasChoices("role", "byRole"),
            description="A role such as push-button, or a family such as button or textbox.",
        ),
    ] = None
    name: Annotated[Text | None, Field(description="The whole name.")] = None
    name_contains: Annotated[
        Text | None,
        Field(validation_alias=AliasChoices("nameContains", "titleContains"), description="A part of the name."),
    ] = None
    value_contains: Annotated[Text | None, Field(description="A part of the text or value.")] = None
    states: Annotated[
        list[Annotated[str, Field(max_length=40)]],
        Field(max_length=16, description="States it must be in, such as checked; `not-checked` for the opposite."),
    ] = []
    limit: Annotated[int, Field(ge=1, le=100, description="How many to return.")] = 10

    @model_validator(mode="after")
    def _has_condition(self) -> Self:
        if not (self.role or self.name or self.name_contains or self.value_contains or self.states):
            raise ValueError("a selector needs at least one of role, name, nameContains, valueContains and states")
        return self

    def fits(self, line: Line) -> bool:
        """True when a line of an outline matches."""
        one = line.element
        return (
            (self.role is None or one.role in roles_called(self.role))
            and (self.name is None or line.name.strip().casefold() == self.name.strip().casefold())
            and (self.name_contains is None or self.name_contains.casefold() in line.name.casefold())
            and (self.value_contains is None or self.value_contains.casefold() in (one.value or "").casefold())
            and all(_in_state(line, state) for state in self.states)
        )


def _in_state(line: Line, state: str) -> bool:
    wanted = state.strip().lower().replace("_", "-").replace(" ", "-")
    if wanted.startswith("not-"):
        return not _in_state(line, wanted[4:])
    return wanted in line.states


def select(selector: Selector, lines: list[Line]) -> list[Line]:
    """The matching lines, those on the screen first, an exact name before a partial one."""
    found = [line for line in lines if selector.fits(line)]
    wanted = (selector.name or selector.name_contains or "").strip().casefold()
    return sorted(
        found, key=lambda line: (not line.is_showing, bool(wanted) and line.name.strip().casefold() != wanted)
    )


@dataclass(slots=True)
class View:
    """A read application or window."""

    place: WindowRoute
    lines: list[Line]
    refs: dict[ElementId, str]
    cut_by: tuple[Limit, ...]

    def nodes(self, lines: list[Line] | None = None) -> list[Node]:
        """The lines in wire form."""
        return [node_of(line, self.refs) for line in (self.lines if lines is None else lines)]


async def read_view(
    computer: Computer,
    scope: Scope,
    references: References,
    route: Route | str | WindowRoute | None,
    *,
    limits: TreeLimits = TreeLimits(),
    max_depth: int = 64,
    max_lines: int = 100_000,
    compact: bool = True,
    hidden: bool = True,
    empty_cells: bool = True,
) -> View:
    """Read the tree at a route, resolved or not, and outline it; every line gets a reference."""
    place = route if isinstance(route, WindowRoute) else await follow(computer, scope, route)
    tree = await computer.accessibility.tree(place.root, limits)
    lines, is_deeper = outline(place.app, tree.elements, compact=compact, hidden=hidden, max_depth=max_depth)
    if not empty_cells:
        lines = [line for line in lines if not line.is_empty_cell]
    cut: set[Limit] = set(tree.cut_by)
    if is_deeper:
        cut.add("depth")
    if len(lines) > max_lines:
        cut.add("nodes")
        lines = _shallowest(lines, max_lines)
    refs = references.give(scope.id, place.app, tree.elements)
    return View(place, lines, refs, tuple(sorted(cut)))


async def pick_one(
    computer: Computer, scope: Scope, references: References, selector: Selector, route: Route | str | None
) -> tuple[View, Line]:
    """The one element that matches a selector.

    Raises:
        ElementNotFound: none matches.
        Conflict: several match; an act on a guess could hit the wrong one.
    """
    limits = TreeLimits(bounds=False, values=selector.value_contains is not None)
    view = await read_view(computer, scope, references, route, limits=limits)
    found = select(selector, view.lines)
    showing = [line for line in found if line.is_showing] or found
    if not showing:
        raise ElementNotFound("No element fits the selector.", matched=0, truncated=bool(view.cut_by))
    if len(showing) > 1:
        raise Conflict(
            f"{len(showing)} elements fit the selector. Narrow it, or act on one by its ref.",
            matched=len(showing),
            candidates=view.nodes(showing[:10]),
        )
    return view, showing[0]


def _shallowest(lines: list[Line], limit: int) -> list[Line]:
    """At most `limit` lines in reading order, the deepest left out first."""
    depths = sorted(line.depth for line in lines)
    deepest = depths[limit - 1]
    room = limit - sum(1 for depth in depths if depth < deepest)
    kept: list[Line] = []
    for line in lines:
        if line.depth < deepest:
            kept.append(line)
        elif line.depth == deepest and room > 0:
            kept.append(line)
            room -= 1
    return kept
