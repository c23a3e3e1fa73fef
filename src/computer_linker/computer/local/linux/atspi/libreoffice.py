"""What LibreOffice needs beside other applications: cells of endless sheets, doubled menus, positions that are wrong."""

from collections.abc import Sequence

from computer_linker.computer.facets.accessibility import Application, Element, ElementId
from computer_linker.computer.local.linux.atspi.details import extents_request
from computer_linker.computer.local.linux.atspi.names import ACCESSIBLE, COMPONENT, SELECTION, TABLE
from computer_linker.computer.local.linux.atspi.nodes import element_id
from computer_linker.computer.local.linux.atspi.wire import Fault, Request, Wire, get

MAX_CELLS = 1_500
_INSET = 3
"""How far inside the table's corners the first and the last visible cell are looked up."""


def is_libreoffice(app: Application) -> bool:
    return app.name.lower().startswith(("soffice", "libreoffice"))


async def visible_cells(wire: Wire, table: ElementId, timeout_s: float) -> list[ElementId] | None:
    """The cells that show, row by row, at most `MAX_CELLS`; None for an element that is no such table."""
    extents, columns = await wire.call_all([extents_request(table), get(table, TABLE, "NColumns")], timeout_s)
    if isinstance(extents, Fault) or not isinstance(columns, int) or columns <= 0 or min(extents[2:]) <= 2 * _INSET:
        return None
    x, y, width, height = extents
    corners = [(x + _INSET, y + _INSET), (x + width - _INSET, y + height - _INSET)]
    found = await wire.call_all(
        [Request(table, COMPONENT, "GetAccessibleAtPoint", "iiu", (*corner, 0)) for corner in corners], timeout_s
    )
    ids = [at for answer in found if not isinstance(answer, Fault) and (at := element_id(answer)) is not None]
    indices = await wire.call_all([Request(at, ACCESSIBLE, "GetIndexInParent") for at in ids], timeout_s)
    if len(ids) != 2 or not all(isinstance(index, int) and index >= 0 for index in indices):
        return None
    (top, left), (bottom, right) = (divmod(index, columns) for index in indices)
    places = [(row, column) for row in range(top, bottom + 1) for column in range(left, right + 1)]
    requests = [Request(table, TABLE, "GetAccessibleAt", "ii", place) for place in places[:MAX_CELLS]]
    answers = await wire.call_all(requests, timeout_s)
    return [at for answer in answers if not isinstance(answer, Fault) and (at := element_id(answer)) is not None]


async def chosen_cells(wire: Wire, table: ElementId, timeout_s: float) -> list[ElementId] | None:
    """The first selected cell alone, which has the focus where the table has it."""
    (answer,) = await wire.call_all([Request(table, SELECTION, "GetSelectedChild", "i", (0,))], timeout_s)
    chosen = None if isinstance(answer, Fault) else element_id(answer)
    return [] if chosen is None else [chosen]


def without_doubled_menus(elements: list[Element]) -> list[Element]:
    """The elements without a second menu bar of the same menus: LibreOffice describes its own beside GTK's, misplaced."""
    menus: dict[ElementId, list[str]] = {one.id: [] for one in elements if one.role == "menu-bar"}
    if len(menus) < 2:
        return elements
    for one in elements:
        if one.parent in menus:
            menus[one.parent].append(one.name)
    bars = list(menus)
    dropped = {bar for place, bar in enumerate(bars) if any(menus[bar] == menus[other] for other in bars[:place])}
    kept: list[Element] = []
    for one in elements:
        if one.id in dropped or one.parent in dropped:
            dropped.add(one.id)
        else:
            kept.append(one)
    return kept


async def is_found_at(wire: Wire, upwards: Sequence[Element], x: int, y: int) -> bool:
    """Whether each container has a child at this point, from the element's window down.

    LibreOffice reports some of its own controls in GTK's tool bars by a menu bar's height too high.
    """
    requests = [Request(one.id, COMPONENT, "GetAccessibleAtPoint", "iiu", (x, y, 0)) for one in upwards[1:]]
    answers = await wire.call_all(requests, 2.0)
    return all(isinstance(answer, Fault) or element_id(answer) is not None for answer in answers)
