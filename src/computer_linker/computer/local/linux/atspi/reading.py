"""Reading a tree: in bulk where the toolkit supports it, with gaps filled, else by pipelined calls.

The bulk reply lags behind new subtrees, but the child counts in it are live: where the number of listed children differs
from the count, the element itself is queried.
"""

import time
from collections import defaultdict

from computer_linker.computer.facets.accessibility import Application, Element, ElementId, Limit, TreeLimits
from computer_linker.computer.local.linux.atspi.element_cache import Fixed, Start, query_elements
from computer_linker.computer.local.linux.atspi.libreoffice import chosen_cells, visible_cells
from computer_linker.computer.local.linux.atspi.names import (
    ACCESSIBLE,
    CACHE,
    CACHE_PATH,
)
from computer_linker.computer.local.linux.atspi.nodes import element_id, from_cache
from computer_linker.computer.local.linux.atspi.wire import Fault, Request, Wire, get

MAX_CHILDREN = 1_000
"""LibreOffice Calc's sheet reports two billion children; requesting them hangs it."""
_FIRST_OF_MANY = 100
_BULK_S = 4.0


class Reading:
    """One reading of one application's tree under its limits."""

    def __init__(self, wire: Wire, app: Application, limits: TreeLimits, known: dict[ElementId, Fixed]) -> None:
        self._wire = wire
        self._app = app
        self._known = known
        self._limits = limits
        self._deadline = time.monotonic() + limits.time_s
        self._is_qt = app.toolkit.lower() == "qt"
        self._windows: list[ElementId] = []
        self.nodes: dict[ElementId, Element] = {}
        self.children: dict[ElementId, list[ElementId]] = {}
        self.cut_by: set[Limit] = set()

    async def run(self, root: ElementId) -> list[Element]:
        """The elements at and below the root, in reading order."""
        if self._limits.bulk and not self._is_qt:
            await self._read_bulk()
        if root in self.nodes:
            await self._fill_holes(root)
        else:
            await self._walk([(root, None, -1)])
        return self._in_order(root)

    def left_s(self) -> float:
        """The remaining time; has a small minimum, so that a reply in flight can still arrive."""
        return max(0.05, self._deadline - time.monotonic())

    async def _read_bulk(self) -> None:
        # GTK 4 leaves its windows out of the bulk reply's counts, so they are requested beside it.
        requests = [Request(ElementId(self._app.id, CACHE_PATH), CACHE, "GetItems")]
        requests.append(Request(self._app.root, ACCESSIBLE, "GetChildren"))
        items, windows = await self._wire.call_all(requests, min(_BULK_S, self.left_s()))
        if isinstance(items, Fault):
            return
        if isinstance(windows, list):
            self._windows = [kid for pair in windows if (kid := element_id(pair)) is not None]
        below: defaultdict[ElementId, list[Element]] = defaultdict(list)
        for item in items:
            element = from_cache(item)
            if element is not None:
                self.nodes[element.id] = element
                if element.parent is not None:
                    below[element.parent].append(element)
        for parent, found in below.items():
            found.sort(key=lambda one: one.index)
            self.children[parent] = [one.id for one in found]
        root = self.nodes.get(self._app.root)
        if root is not None and self._windows and all(kid in self.nodes for kid in self._windows):
            self.children[root.id], root.children = self._windows, len(self._windows)

    async def _fill_holes(self, root: ElementId) -> None:
        """Query every reachable element whose number of listed children differs from its count."""
        pending, seen = [root], {root}
        holes: list[ElementId] = []
        while pending:
            at = pending.pop()
            kids = self.children.get(at, [])
            if self.nodes[at].children != len(kids):
                holes.append(at)
            else:
                pending += [kid for kid in kids if kid not in seen]
                seen.update(kids)
        if holes:
            await self._walk_below(holes)

    async def _walk_below(self, holes: list[ElementId]) -> None:
        # A count of 0 or -1 in the bulk reply means that the toolkit did not count.
        await self._count_children([at for at in holes if self.nodes[at].children <= 0])
        kids = await self._query_children(holes)
        again: list[ElementId] = []
        fresh: list[Start] = []
        for parent, found in kids.items():
            self.children[parent] = found
            for index, kid in enumerate(found):
                if kid in self.nodes:
                    again.append(kid)
                else:
                    fresh.append((kid, parent, index))
        await self._walk(fresh)
        for kid in again:
            if self._may_go_on():
                await self._fill_holes(kid)

    async def _walk(self, level: list[Start]) -> None:
        """Read these elements and all below them, one level at a time, many calls in flight."""
        depth = 0
        while level and self._may_go_on():
            room = self._limits.max_nodes * 2 - len(self.nodes)
            if len(level) > room:
                self.cut_by.add("nodes")
                level = level[: max(0, room)]
            parents = await self._read_level(level)
            kids = await self._query_children(parents)
            self.children.update(kids)
            level = [
                (kid, parent, index)
                for parent, found in kids.items()
                for index, kid in enumerate(found)
                if kid not in self.nodes
            ]
            depth += 1
            if depth > self._limits.max_depth and level:
                self.cut_by.add("depth")
                return

    async def _read_level(self, level: list[Start]) -> list[ElementId]:
        found, is_late = await query_elements(self._wire, self._app, self._known, level, self.left_s())
        if is_late:
            self.cut_by.add("time")
        for element in found:
            self.nodes[element.id] = element
        return [element.id for element in found if element.children]

    async def _query_children(self, parents: list[ElementId]) -> dict[ElementId, list[ElementId]]:
        if self._is_qt:
            await self._count_children(parents)
        parents = [at for at in parents if self.nodes[at].children > 0]
        sheets = await self._visible_cells([at for at in parents if self.nodes[at].children > MAX_CHILDREN])
        requests: list[Request] = []
        owners: list[ElementId] = []
        for at in parents:
            count = self.nodes[at].children
            if at in sheets:
                continue
            if count > MAX_CHILDREN:
                # Requesting all of them hangs some applications; the first few are requested one by one.
                self.cut_by.add("children")
                requests += [
                    Request(at, ACCESSIBLE, "GetChildAtIndex", "i", (place,)) for place in range(_FIRST_OF_MANY)
                ]
                owners += [at] * _FIRST_OF_MANY
            else:
                requests.append(Request(at, ACCESSIBLE, "GetChildren"))
                owners.append(at)
        answers = await self._wire.call_all(requests, self.left_s())
        found: dict[ElementId, list[ElementId]] = {at: [] for at in parents}
        for at, answer, request in zip(owners, answers, requests, strict=True):
            if isinstance(answer, Fault):
                continue
            pairs = [answer] if request.member == "GetChildAtIndex" else answer
            found[at] += [kid for pair in pairs if (kid := element_id(pair)) is not None and kid != at]
        return found | sheets

    async def _visible_cells(self, tables: list[ElementId]) -> dict[ElementId, list[ElementId]]:
        """The cells that show of tables too large to list; what is beyond the window is left out."""
        found: dict[ElementId, list[ElementId]] = {}
        for at in [at for at in tables if "Table" in self.nodes[at].interfaces]:
            find = visible_cells if self._limits.cells else chosen_cells
            seen = await find(self._wire, at, self.left_s())
            if seen is not None:
                found[at] = seen
                self.cut_by.add("children")
        return found

    async def _count_children(self, parents: list[ElementId]) -> None:
        answers = await self._wire.call_all([get(at, ACCESSIBLE, "ChildCount") for at in parents], self.left_s())
        for at, answer in zip(parents, answers, strict=True):
            self.nodes[at].children = answer if isinstance(answer, int) else 0

    def _may_go_on(self) -> bool:
        if time.monotonic() > self._deadline:
            self.cut_by.add("time")
            return False
        return True

    def _in_order(self, root: ElementId) -> list[Element]:
        """Breadth first under the node limit, so that truncation drops the deepest; then sorted into reading order."""
        if root not in self.nodes:
            return []
        if root == self._app.root:
            self.nodes[root].parent = None
        kept: dict[ElementId, int] = {root: 0}
        level, depth = [root], 0
        while level:
            depth += 1
            below: list[ElementId] = []
            for at in level:
                for kid in self.children.get(at, ()):
                    if kid in kept or kid not in self.nodes:
                        continue
                    if len(kept) >= self._limits.max_nodes:
                        self.cut_by.add("nodes")
                        break
                    self.nodes[kid].parent = at
                    kept[kid] = depth
                    below.append(kid)
            level = below
            if depth >= self._limits.max_depth and any(self.children.get(at) for at in level):
                self.cut_by.add("depth")
                break
        order: list[Element] = []
        stack = [root]
        while stack:
            at = stack.pop()
            order.append(self.nodes[at])
            stack += [kid for kid in reversed(self.children.get(at, ())) if kept.get(kid) == kept[at] + 1]
        return order
