"""Sets cells in a sheet of an Excel workbook by byte positions in its XML."""

import re
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape

from computer_linker.providers.documents.inside.base import Refused, damaged, invalid
from computer_linker.providers.documents.inside.grid import area_of, cell_of, letters
from computer_linker.providers.documents.inside.markup import local
from computer_linker.providers.documents.inside.splice import applied, checked_parser, run, tag_end

Value = str | int | float | bool | None
_MAX_CELLS = 10_000
_NO_FORMULA = ("shared", "array", "dataTable")


@dataclass(slots=True)
class Found:
    """An element of the sheet: its place, its number, and what it holds."""

    start: int
    number: int
    end: int = 0
    style: str = ""
    has_formula: bool = False
    governs: bool = False
    """Its formula also applies to other cells."""
    cells: list["Found"] = field(default_factory=list)


@dataclass(slots=True)
class Sheet:
    rows: list[Found] = field(default_factory=list)
    data: tuple[int, int] = (0, 0)
    """Where the element of all rows starts, and where its end tag does."""
    prefix: str = ""
    has_formulas: bool = False


def wanted_cells(edits: list[dict[str, Any]]) -> dict[tuple[int, int], Value]:
    """The new values by (row, column)."""
    found: dict[tuple[int, int], Value] = {}
    for edit in edits:
        area, values = area_of(edit["range"]), edit["values"]
        height, width = area.bottom - area.top + 1, area.right - area.left + 1
        if height * width > _MAX_CELLS or len(found) > _MAX_CELLS:
            raise Refused("limit_exceeded", f"At most {_MAX_CELLS} cells are changed at once.")
        rows = values if isinstance(values, list) else [[values] * width] * height
        if len(rows) != height or any(not isinstance(row, list) or len(row) != width for row in rows):
            raise invalid(f"{edit['range']} has {height} rows of {width} cells, and so must `values`.")
        for down, row in enumerate(rows):
            for right, value in enumerate(row):
                found[area.top + down, area.left + right] = value
    return found


def surveyed(content: bytes) -> Sheet:
    """The rows and cells of a sheet with their byte positions."""
    sheet = Sheet()
    made = checked_parser(content)
    last = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal last
        at = made.CurrentByteIndex
        match local(name):
            case "sheetData":
                sheet.data, sheet.prefix = (at, at), name[: -len("sheetData")]
            case "row":
                number = attributes.get("r", "")
                sheet.rows.append(Found(at, int(number) if number.isdigit() else _after(sheet.rows)))
                last = 0
            case "c" if sheet.rows:
                place = attributes.get("r", "")
                last = cell_of(place)[0] if place else last + 1
                sheet.rows[-1].cells.append(Found(at, last, style=attributes.get("s", "")))
            case "f" if sheet.rows and sheet.rows[-1].cells:
                cell = sheet.rows[-1].cells[-1]
                cell.has_formula = sheet.has_formulas = True
                cell.governs = attributes.get("t") in _NO_FORMULA and "ref" in attributes

    def end(name: str) -> None:
        at = made.CurrentByteIndex
        match local(name):
            case "sheetData":
                sheet.data = sheet.data[0], at
            case "row" if sheet.rows:
                sheet.rows[-1].end = at
            case "c" if sheet.rows and sheet.rows[-1].cells:
                sheet.rows[-1].cells[-1].end = tag_end(content, at)

    made.StartElementHandler, made.EndElementHandler = start, end
    run(made, content)
    if not sheet.data[0]:
        raise damaged("the sheet has no rows element")
    return sheet


def _after(rows: list[Found]) -> int:
    return rows[-1].number + 1 if rows else 1


def with_cells(content: bytes, sheet: Sheet, values: dict[tuple[int, int], Value]) -> tuple[bytes, list[str]]:
    """The sheet with these values, and the cells whose formula was replaced."""
    by_row: dict[int, dict[int, Value]] = {}
    for (row, column), value in values.items():
        by_row.setdefault(row, {})[column] = value
    rows = {row.number: row for row in sheet.rows}
    patches: list[tuple[int, int, bytes]] = []
    gone: list[str] = []
    fresh: dict[int, bytes] = {}
    for number in sorted(by_row):
        if number in rows:
            patches += _in_row(content, sheet.prefix, rows[number], by_row[number], gone)
        else:
            cells = b"".join(_cell(sheet.prefix, number, at, value, "") for at, value in sorted(by_row[number].items()))
            place = next((row.start for row in sheet.rows if row.number > number), -1)
            name = f"{sheet.prefix}row"
            fresh[place] = fresh.get(place, b"") + f'<{name} r="{number}">'.encode() + cells + f"</{name}>".encode()
    for place, rows_xml in fresh.items():
        patches.append((place, place, rows_xml) if place >= 0 else _at_end(content, sheet, rows_xml))
    return _with_dimension(applied(content, patches), values), gone


def _at_end(content: bytes, sheet: Sheet, rows: bytes) -> tuple[int, int, bytes]:
    start, end = sheet.data
    if end > start:
        return end, end, rows
    name = f"{sheet.prefix}sheetData".encode()
    return start, tag_end(content, start), b"<" + name + b">" + rows + b"</" + name + b">"


def _in_row(
    content: bytes, prefix: str, row: Found, values: dict[int, Value], gone: list[str]
) -> list[tuple[int, int, bytes]]:
    patches: list[tuple[int, int, bytes]] = []
    known = {cell.number: cell for cell in row.cells}
    fresh: dict[int, bytes] = {}
    opened = tag_end(content, row.start)
    for column, value in sorted(values.items()):
        cell = known.get(column)
        if cell is not None:
            if cell.governs:
                raise invalid(
                    f"The formula of {letters(column)}{row.number} also fills other cells; it is not replaced."
                )
            if cell.has_formula:
                gone.append(f"{letters(column)}{row.number}")
            patches.append((cell.start, cell.end, _cell(prefix, row.number, column, value, cell.style)))
            continue
        place = next((one.start for one in row.cells if one.number > column), row.end)
        fresh[place] = fresh.get(place, b"") + _cell(prefix, row.number, column, value, "")
    for place, cells in fresh.items():
        if place == row.start:
            tag = content[row.start : opened].rstrip(b">").rstrip(b"/")
            patches.append((row.start, opened, tag + b">" + cells + f"</{prefix}row>".encode()))
        else:
            patches.append((place, place, cells))
    return patches


def _cell(prefix: str, row: int, column: int, value: Value, style: str) -> bytes:
    styled = f' s="{style}"' if style else ""
    head = f'<{prefix}c r="{letters(column)}{row}"{styled}'
    close = f"</{prefix}c>"
    match value:
        case None:
            text = head + "/>"
        case bool():
            text = f'{head} t="b"><{prefix}v>{int(value)}</{prefix}v>{close}'
        case int() | float():
            text = f"{head}><{prefix}v>{value!r}</{prefix}v>{close}"
        case str() if value.startswith("=") and len(value) > 1:
            text = f"{head}><{prefix}f>{escape(value[1:])}</{prefix}f>{close}"
        case str():
            inner = f'<{prefix}t xml:space="preserve">{escape(value)}</{prefix}t>'
            text = f'{head} t="inlineStr"><{prefix}is>{inner}</{prefix}is>{close}'
    return text.encode("utf-8")


def _with_dimension(content: bytes, values: dict[tuple[int, int], Value]) -> bytes:
    """The sheet's stated area, widened to the cells that were set."""
    found = re.search(rb"(<(?:\w+:)?dimension\s[^>]*?ref=[\"'])([A-Z0-9:]{2,30})([\"'])", content[:4096])
    if found is None:
        return content
    area = area_of(found[2].decode())
    left, right = min(area.left, *(at for _, at in values)), max(area.right, *(at for _, at in values))
    top, bottom = min(area.top, *(row for row, _ in values)), max(area.bottom, *(row for row, _ in values))
    wider = f"{letters(left)}{top}:{letters(right)}{bottom}".encode()
    if (left, top, right, bottom) == (area.left, area.top, area.right, area.bottom):
        return content
    return content[: found.start(2)] + wider + content[found.end(2) :]


def without_chain(content: bytes, sheet_id: str, gone: list[str]) -> bytes:
    """The calculation chain without these cells; an entry without a sheet number takes that of the one before."""
    wanted, sheet, carried = set(gone), "", ""
    out: list[bytes] = []
    last = 0
    for found in re.finditer(rb"<(?:\w+:)?c\s[^>]*/>", content):
        entry = found[0]
        number = re.search(rb'\si="(\d+)"', entry)
        place = re.search(rb'\sr="([A-Z]+\d+)"', entry)
        sheet = number[1].decode() if number is not None else sheet
        out.append(content[last : found.start()])
        last = found.end()
        if sheet == sheet_id and place is not None and place[1].decode() in wanted:
            carried = sheet
            continue
        if carried and number is None:
            entry = entry[:-2] + f' i="{sheet}"/>'.encode()
        carried = ""
        out.append(entry)
    return b"".join(out) + content[last:]


def recalculated(workbook: bytes) -> bytes:
    """The workbook's part with the request to calculate anew when it is opened."""
    found = re.search(rb"<(?:\w+:)?calcPr\b[^>]*?/?>", workbook)
    if found is not None:
        if b"fullCalcOnLoad" in found[0]:
            return re.sub(rb'fullCalcOnLoad="[^"]*"', b'fullCalcOnLoad="1"', workbook)
        at = found.end() - (2 if found[0].endswith(b"/>") else 1)
        return workbook[:at] + b' fullCalcOnLoad="1"' + workbook[at:]
    ends = list(re.finditer(rb"</((?:\w+:)?)(?:sheets|functionGroups|externalReferences|definedNames)>", workbook))
    if not ends:
        return workbook
    last = ends[-1]
    return workbook[: last.end()] + b"<" + last[1] + b'calcPr fullCalcOnLoad="1"/>' + workbook[last.end() :]
