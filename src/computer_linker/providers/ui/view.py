"""Reads an application or window: its outline with references, and the elements that match a selector."""

from dataclasses import dataclass

from computer_linker.computer.base import Computer
from computer_linker.computer.facets.accessibility import ElementId, Limit, TreeLimits
from computer_linker.errors import Conflict, ElementNotFound
from computer_linker.model.scope import Scope
from computer_linker.providers.refs.store import References
from computer_linker.providers.ui.nodes import Node, node_of
from computer_linker.providers.ui.outline import Line, outline
from computer_linker.providers.ui.route import Route, WindowRoute, follow
from computer_linker.providers.ui.selector import Selector, select


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
