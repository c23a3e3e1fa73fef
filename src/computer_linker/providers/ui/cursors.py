"""Cursors: what a client has seen of a tree, so that the next look can tell the changes alone."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Self

from computer_linker.errors import InvalidRequest, StaleReference
from computer_linker.model.ids import new_handle
from computer_linker.providers.ui.nodes import Node

MAX_CURSORS = 32


@dataclass(frozen=True, slots=True)
class Seen:
    """The nodes of one look, and what it looked at."""

    scope: str
    what: str
    nodes: dict[str, Node]


class Cursors:
    """The latest looks, a bounded number of them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Seen] = OrderedDict()

    @classmethod
    def open(cls, services: object) -> Self:
        return cls()

    def keep(self, scope: str, what: str, nodes: list[Node]) -> str:
        """Remember a look; the answer names it."""
        cursor = new_handle("view")
        self._kept[cursor] = Seen(scope, what, {node["ref"]: node for node in nodes})
        while len(self._kept) > MAX_CURSORS:
            self._kept.popitem(last=False)
        return cursor

    def changes(self, cursor: str, scope: str, what: str, nodes: list[Node]) -> tuple[list[Node], list[str]]:
        """The nodes that are new or different since then, and the references of those that are gone."""
        seen = self._kept.get(cursor)
        if seen is None or seen.scope != scope:
            raise StaleReference("That look is no longer remembered. Call again without `since`.", since=cursor[:64])
        if seen.what != what:
            raise InvalidRequest("`since` belongs to a look at something else, or with other options.")
        now = {node["ref"] for node in nodes}
        changed = [node for node in nodes if seen.nodes.get(node["ref"]) != node]
        return changed, [ref for ref in seen.nodes if ref not in now]
