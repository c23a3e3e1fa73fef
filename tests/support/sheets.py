"""Spreadsheets as one XML file (flat OpenDocument), which LibreOffice saves without questions: written and read here."""

from pathlib import Path
from xml.etree import ElementTree

_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"


def sheet_document(rows: list[list[str]]) -> str:
    """A document with one sheet of these texts."""
    cells = ["".join(f'<table:table-cell office:value-type="string"><text:p>{one}</text:p></table:table-cell>' for one in row) for row in rows]  # fmt: skip
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in cells)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document xmlns:office="{_OFFICE}" xmlns:table="{_TABLE}" xmlns:text="{_TEXT}" office:version="1.3" '
        'office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body><office:spreadsheet>'
        f'<table:table table:name="Data">{body}</table:table></office:spreadsheet></office:body></office:document>'
    )


def sheet_cells(file: Path, repeated: int = 1) -> list[list[str]]:
    """The texts of the saved file. Equal neighbours are in it once; they are given at most `repeated` times."""
    rows = ElementTree.fromstring(file.read_text("utf-8")).iter(f"{{{_TABLE}}}table-row")
    return [line for row in rows for line in [_row(row, repeated)] * _times(row, "rows", repeated)]


def _row(row: ElementTree.Element, repeated: int) -> list[str]:
    cells = row.iter(f"{{{_TABLE}}}table-cell")
    return [text for cell in cells for text in [_text_of(cell)] * _times(cell, "columns", repeated)]


def _times(one: ElementTree.Element, which: str, at_most: int) -> int:
    return min(at_most, int(one.get(f"{{{_TABLE}}}number-{which}-repeated", "1")))


def is_whole(file: Path) -> bool:
    """Whether the file was written to its end."""
    return file.read_text("utf-8").rstrip().endswith("</office:document>")


def _text_of(cell: ElementTree.Element) -> str:
    return "\n".join("".join(part.itertext()) for part in cell.iter(f"{{{_TEXT}}}p"))
