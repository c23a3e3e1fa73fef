"""Excel workbooks: a range of one sheet, found by scanning the sheet's bytes instead of parsing all of it."""

import itertools
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from computer_linker.providers.documents.inside.base import Document, Part, Request, damaged, invalid, no_image
from computer_linker.providers.documents.inside.grid import (
    MAX_ROW,
    SHOWN_COLUMNS,
    Area,
    Lines,
    area_of,
    cell_of,
    letters,
)
from computer_linker.providers.documents.inside.markup import Node, feed, parser, relations, tree
from computer_linker.providers.documents.inside.package import Package

_ROW = re.compile(rb"<(?:\w+:)?row\b[^>]*?\sr=[\"'](\d{1,7})[\"']")
_DIMENSION = re.compile(rb"<(?:\w+:)?dimension\s[^>]*?ref=[\"']([A-Z0-9:$]{1,30})[\"']")
_ITEM = re.compile(rb"<(?:\w+:)?si[\s>/]")
_DATE_IDS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_DATE = re.compile(r"[ymdhs]", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.')
_MAX_WANTED = 200_000
_MAX_ROW_BYTES = 32 << 20


class Workbook:
    """The sheets of a workbook and what their cells refer to."""

    def __init__(self, package: Package, main: str) -> None:
        self.package, self.main = package, main
        self.relations = relations(package, main)
        node = tree(package.read(main))
        self.names: list[str] = []
        self.parts: list[str] = []
        for sheet in node.find_all("sheet"):
            part = self.relations.get(sheet.attributes.get("id", ""), "")
            if part in package:
                self.names.append(sheet.attributes.get("name", ""))
                self.parts.append(part)
        settings = node.find("workbookPr")
        self.is_1904 = settings is not None and settings.attributes.get("date1904") in ("1", "true")
        self._folder = main.rpartition("/")[0]

    def index(self, request: Request) -> int:
        """The wanted sheet's index, by name or by number."""
        if not self.parts:
            raise damaged("the workbook has no sheets")
        if request.sheet is not None:
            if request.sheet not in self.names:
                raise invalid(f"There is no sheet {request.sheet!r}; there are: {', '.join(self.names)[:500]}.")
            return self.names.index(request.sheet)
        page = request.page or 1
        if page > len(self.parts):
            raise invalid(f"There is no sheet {page}: it has {len(self.parts)}.")
        return page - 1

    def date_styles(self) -> list[str]:
        """For each cell style: `date`, `time`, or empty."""
        part = f"{self._folder}/styles.xml" if self._folder else "styles.xml"
        if part not in self.package:
            return []
        node = tree(self.package.read(part))
        custom = {
            one.attributes.get("numFmtId", ""): one.attributes.get("formatCode", "") for one in node.find_all("numFmt")
        }
        formats = node.find("cellXfs")
        return [] if formats is None else [_kind_of(one, custom) for one in formats.children]

    def strings(self, wanted: set[int]) -> dict[int, str]:
        """Shared strings by number; the rest of the table is skipped unparsed."""
        part = f"{self._folder}/sharedStrings.xml" if self._folder else "sharedStrings.xml"
        if not wanted or part not in self.package:
            return {}
        found: dict[int, str] = {}
        last, seen, rest = max(wanted), -1, b""
        for piece in self.package.stream(part):
            data = rest + piece
            starts = [match.start() for match in _ITEM.finditer(data)]
            # The last item may go on in the next piece.
            for at, end in itertools.pairwise(starts):
                seen += 1
                if seen in wanted:
                    found[seen] = _string(data[at:end])
            rest = data[starts[-1] :] if starts else data[-64:] if seen < 0 else data
            if seen >= last:
                return found
        if rest and seen + 1 in wanted:
            found[seen + 1] = _string(rest)
        return found


def _kind_of(style: Node, custom: dict[str, str]) -> str:
    number = style.attributes.get("numFmtId", "0")
    if number in custom:
        plain = _QUOTED.sub("", custom[number])
        if not _DATE.search(plain) or "General" in plain or "0" in plain.replace(".0", "").replace(".00", ""):
            return ""
        return "date" if re.search("[yd]", plain, re.IGNORECASE) else "time"
    if number.isdigit() and int(number) in _DATE_IDS:
        return "time" if int(number) in (18, 19, 20, 21, 45, 46, 47) else "date"
    return ""


def _string(item: bytes) -> str:
    """The text of one <si> element; phonetic hints are left out."""
    item = re.sub(rb"<(?:\w+:)?rPh\b.*?</(?:\w+:)?rPh>", b"", item, flags=re.DOTALL)
    found = re.findall(rb"<(?:\w+:)?t(?:\s[^>]*)?>([^<]*)</", item)
    return _unescaped(b"".join(found).decode("utf-8", "replace"))


def _unescaped(text: str) -> str:
    if "&" in text:
        from html import unescape

        text = unescape(text)
    return re.sub(r"_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def excel(package: Package, request: Request, main: str) -> Document:
    """A range of one sheet: the row's number and the cells' values, between tabs."""
    if request.wants_image:
        no_image("spreadsheet")
    book = Workbook(package, main)
    index = book.index(request)
    wanted = None if request.range is None else area_of(request.range)
    used, rows, goes_on = _cells(package, book.parts[index], wanted, request.max_bytes)
    strings = book.strings(
        {int(value) for row in rows.values() for kind, value, _ in row.values() if kind == "s" and value.isdigit()}
    )
    styles = book.date_styles()
    area = _area(wanted, used, rows)
    lines = Lines([letters(column) for column in range(area.left, area.right + 1)], request.max_bytes)
    for number in sorted(rows):
        cells = rows[number]
        texts = [
            _value(*cells[column], strings, styles, book.is_1904) if column in cells else ""
            for column in range(area.left, area.right + 1)
        ]
        if any(texts) and not lines.add(number, texts):
            break
    facts: dict[str, Any] = {
        "sheets": book.names[:200],
        "range": str(Area(area.left, area.top, area.right, area.bottom)),
    }
    if used is not None:
        facts["used"] = str(used)
    end = area.bottom if not lines.is_full else lines.last
    if lines.is_full or goes_on:
        final = wanted.bottom if wanted is not None else used.bottom if used is not None else area.bottom
        # Where the sheet does not state its end, the next range is as tall as this one.
        final = final if final > end else end + max(end - area.top, 99) + 1
        facts["range"] = str(Area(area.left, area.top, area.right, end))
        facts["next"] = {"sheet": book.names[index], "range": str(Area(area.left, end + 1, area.right, final))}
    part = Part(index + 1, lines.text(), book.names[index])
    return Document("spreadsheet", "sheet", len(book.names), [part], facts, is_bounded=True)


def _area(wanted: Area | None, used: Area | None, rows: dict[int, Any]) -> Area:
    columns = [column for row in rows.values() for column in row]
    right = max(columns, default=1)
    if wanted is None:
        return Area(1, min(rows, default=1), min(right, SHOWN_COLUMNS), max(rows, default=1))
    bottom = min(wanted.bottom, max(max(rows, default=wanted.top), wanted.top))
    return Area(wanted.left, wanted.top, min(wanted.right, max(right, wanted.left)), bottom)


Cell = tuple[str, str, int]
"""Its type, value and style."""


def _cells(
    package: Package, part: str, wanted: Area | None, room: int
) -> tuple[Area | None, dict[int, dict[int, Cell]], bool]:
    """The sheet's used area as it states it, the cells of the wanted rows, and whether rows were left out for want of room."""
    pieces = package.stream(part)
    head = next(pieces, b"")
    stated = _DIMENSION.search(head[:4096])
    used = area_of(stated[1].decode()) if stated is not None else None
    top, bottom = (1, MAX_ROW) if wanted is None else (wanted.top, wanted.bottom)
    left, right = (1, SHOWN_COLUMNS) if wanted is None else (wanted.left, wanted.right)
    reader = _Rows(Area(left, top, right, bottom), room)
    reader.read(_from_row(head, pieces, top))
    return used, reader.rows, reader.is_cut


def _from_row(head: bytes, pieces: Iterator[bytes], top: int) -> Iterator[bytes]:
    """The sheet's XML with the rows before `top` left out, which are found by their numbers and not parsed."""
    start = _ROW.search(head)
    if top <= 1 or start is None:
        yield head
        yield from pieces
        return
    yield head[: start.start()]
    data = head[start.start() :]
    while True:
        last = data.rfind(b"<row ")
        found = _ROW.match(data, last) if last >= 0 else None
        if found is not None and (int(found[1]) >= top or b"</sheetData" in data[last:]):
            break
        # Rows are in order: all before the last one of this piece have smaller numbers. A tag cut by its end is read on.
        following = next(pieces, None)
        if following is None or len(data) > _MAX_ROW_BYTES:
            break
        data = (data[last:] if found is not None else data) + following
    at = next((match.start() for match in _ROW.finditer(data) if int(match[1]) >= top), None)
    if at is None:
        closing = data.rfind(b"</sheetData")
        at = closing if closing >= 0 else data.rfind(b"<row ") if data.rfind(b"<row ") >= 0 else 0
    yield data[at:]
    yield from pieces


class _Enough(Exception):
    """Everything wanted was read."""


class _Rows:
    """Collects the cells of the wanted area while the sheet streams by."""

    def __init__(self, area: Area, room: int) -> None:
        self.area, self._room = area, room
        self.rows: dict[int, dict[int, Cell]] = {}
        self._row = self._column = self._count = 0
        self.is_cut = False
        self._cell: tuple[str, int] | None = None
        self._collects = ""
        self._text: dict[str, list[str]] = {}

    def read(self, pieces: Iterator[bytes]) -> None:
        try:
            feed(parser(self._start, self._end, self._data), pieces)
        except _Enough:
            return

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "row":
                number = attributes.get("r", "")
                self._row = int(number) if number.isdigit() else self._row + 1
                self._column = 0
                self.is_cut = self._row <= self.area.bottom and (self._room < 0 or self._count > _MAX_WANTED)
                if self._row > self.area.bottom or self.is_cut:
                    raise _Enough
            case "c":
                place = attributes.get("r", "")
                self._column = cell_of(place)[0] if place else self._column + 1
                style = attributes.get("s", "0")
                self._cell = attributes.get("t", "n"), int(style) if style.isdigit() else 0
                self._text = {}
            case "v" | "t" | "f":
                self._collects = name

    def _data(self, data: str) -> None:
        if self._collects and self._cell is not None:
            self._text.setdefault(self._collects, []).append(data)

    def _end(self, name: str) -> None:
        if name in ("v", "t", "f"):
            self._collects = ""
        elif name == "c" and self._cell is not None:
            if self._row >= self.area.top and self.area.left <= self._column <= self.area.right:
                self._keep(*self._cell)
            self._cell = None
        elif name == "sheetData":
            raise _Enough

    def _keep(self, kind: str, style: int) -> None:
        value = "".join(self._text.get("v") or self._text.get("t") or ())
        if not value and "f" in self._text:
            kind, value = "str", "=" + "".join(self._text["f"])
        if value:
            self.rows.setdefault(self._row, {})[self._column] = (kind, value, style)
            self._count += 1
            self._room -= 2 if kind == "s" else len(value) + 1


def _value(kind: str, value: str, style: int, strings: dict[int, str], styles: list[str], is_1904: bool) -> str:
    match kind:
        case "s":
            return strings.get(int(value), "") if value.isdigit() else ""
        case "b":
            return "TRUE" if value == "1" else "FALSE"
        case "inlineStr" | "str":
            return _unescaped(value) if kind == "inlineStr" else value
        case "n" if style < len(styles) and styles[style]:
            return _date(value, styles[style], is_1904)
    return value


def _date(value: str, kind: str, is_1904: bool) -> str:
    """A serial number as a date; as it is where it cannot be one."""
    try:
        serial = float(value)
        # Excel counts a 29th of February 1900, which never was.
        start = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30) if serial >= 60 else datetime(1899, 12, 31)
        moment = start + timedelta(seconds=round(serial * 86_400))
    except (ValueError, OverflowError):
        return value
    if kind == "time" and 0 <= serial < 1:
        return moment.time().isoformat()
    return moment.date().isoformat() if serial == int(serial) else moment.isoformat(sep=" ")
