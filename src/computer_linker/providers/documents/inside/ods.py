"""OpenDocument spreadsheets: a range of one sheet, streamed."""

from typing import Any

from computer_linker.providers.documents.inside.base import Document, Part, Request, invalid, no_image
from computer_linker.providers.documents.inside.grid import MAX_ROW, SHOWN_COLUMNS, Area, Lines, area_of, letters
from computer_linker.providers.documents.inside.markup import feed, parser
from computer_linker.providers.documents.inside.package import Package

_VALUES = {
    "float": "office:value", "percentage": "office:value", "currency": "office:value", "date": "office:date-value",
    "time": "office:time-value", "boolean": "office:boolean-value", "string": "office:string-value",
}  # fmt: skip


class _Sheets:
    """Collects the names of all sheets, and the cells of one."""

    def __init__(self, request: Request, area: Area) -> None:
        self.request, self.area = request, area
        self.names: list[str] = []
        self.rows: dict[int, dict[int, str]] = {}
        self.chosen = -1
        self.last_row = 0
        self._row = self._column = self._repeat = self._rows = self._depth = 0
        self._value: str | None = None
        self._text: list[str] | None = None
        self._room = request.max_bytes

    def start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "table":
                self.names.append(attributes.get("table:name", ""))
                wanted = self.request.sheet
                number = len(self.names)
                is_wanted = self.names[-1] == wanted if wanted is not None else number == (self.request.page or 1)
                self.chosen = number - 1 if is_wanted and self.chosen < 0 else self.chosen
                self._row, self._depth = 0, 1 if is_wanted else 0
            case "table-row" if self._depth:
                self._rows = _count(attributes.get("table:number-rows-repeated"))
                self._column = 0
                self._first = self._row + 1
            case "table-cell" | "covered-table-cell" if self._depth:
                self._repeat = _count(attributes.get("table:number-columns-repeated"))
                key = _VALUES.get(attributes.get("office:value-type", ""), "")
                self._value = attributes.get(key)
                self._text = []
            case "p" if self._text:
                self._text.append("\n")

    def text(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def end(self, name: str) -> None:
        match name:
            case "table":
                self._depth = 0
            case "table-row" if self._depth:
                self._row += self._rows
                if self.rows.get(self._first) and self._rows > 1:
                    for number in range(self._first + 1, min(self._first + self._rows, self.area.bottom + 1)):
                        self.rows[number] = self.rows[self._first]
            case "table-cell" | "covered-table-cell" if self._depth:
                self._keep("".join(self._text or ()) if self._value is None else self._value)
                self._column += self._repeat
                self._text = None

    def _keep(self, value: str) -> None:
        row = self._row + 1
        if not value:
            return
        self.last_row = max(self.last_row, row + self._rows - 1 if self._rows < 1000 else row)
        if not self.area.top <= row <= self.area.bottom or self._room < 0:
            return
        end = min(self._column + self._repeat, self.area.right)
        for column in range(max(self._column + 1, self.area.left), end + 1):
            self.rows.setdefault(row, {})[column] = value
            self._room -= len(value) + 1


def _count(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 1


def ods(package: Package, request: Request) -> Document:
    """A range of one sheet, as for Excel."""
    if request.wants_image:
        no_image("spreadsheet")
    wanted = Area(1, 1, SHOWN_COLUMNS, MAX_ROW) if request.range is None else area_of(request.range)
    found = _Sheets(request, wanted)
    feed(parser(found.start, found.end, found.text), package.stream("content.xml"))
    if found.chosen < 0:
        asked = request.sheet if request.sheet is not None else request.page
        raise invalid(f"There is no sheet {asked!r}; there are: {', '.join(found.names)[:500]}.")
    right = min(wanted.right, max((column for row in found.rows.values() for column in row), default=1))
    lines = Lines([letters(column) for column in range(wanted.left, right + 1)], request.max_bytes)
    for number in sorted(found.rows):
        cells = [found.rows[number].get(column, "") for column in range(wanted.left, right + 1)]
        if not lines.add(number, cells):
            break
    bottom = min(wanted.bottom, found.last_row)
    end = lines.last if lines.is_full else max(bottom, 1)
    facts: dict[str, Any] = {
        "sheets": found.names[:200],
        "range": str(Area(wanted.left, wanted.top, right, max(end, wanted.top))),
    }
    if end < bottom:
        facts["next"] = {"sheet": found.names[found.chosen], "range": str(Area(wanted.left, end + 1, right, bottom))}
    part = Part(found.chosen + 1, lines.text(), found.names[found.chosen])
    return Document("spreadsheet", "sheet", len(found.names), [part], facts, is_bounded=True)
