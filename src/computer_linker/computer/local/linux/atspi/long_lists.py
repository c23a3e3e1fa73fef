"""Rows of long lists in GTK 4, which says of each that it is visible: those below what shows are not asked where they are."""

from collections.abc import Sequence

from computer_linker.computer.facets.accessibility import Element, ElementId
from computer_linker.computer.local.linux.atspi.bounds import Extents

_FIRST = 8
_ROWS = frozenset({"list-item", "table-row", "tree-item"})
_UP_TO_PANE = 5


class LongLists:
    """The later rows of the lists among some elements, and what tells whether they show."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self._by_id = {one.id: one for one in elements}
        self._rows: dict[ElementId, list[Element]] = {}
        for one in elements:
            if one.role in _ROWS and one.parent is not None:
                self._rows.setdefault(one.parent, []).append(one)
        self._rows = {at: rows for at, rows in self._rows.items() if len(rows) > _FIRST and self._pane(at) is not None}
        self._later = {row.id for rows in self._rows.values() for row in rows[_FIRST:]}

    def first(self, elements: Sequence[Element]) -> list[Element]:
        """All but the later rows."""
        return [one for one in elements if one.id not in self._later]

    def then(self, extents: dict[ElementId, Extents]) -> list[Element]:
        """The later rows of lists whose first rows do not reach beyond what shows of the list."""
        return [
            row for at, rows in self._rows.items() if not self._is_beyond(at, rows, extents) for row in rows[_FIRST:]
        ]

    def _is_beyond(self, at: ElementId, rows: list[Element], extents: dict[ElementId, Extents]) -> bool:
        last, pane = extents.get(rows[_FIRST - 1].id), extents.get(self._pane(at) or at)
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
