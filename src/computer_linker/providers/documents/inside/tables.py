"""CSV, TSV and Parquet as a bounded table with types."""

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from computer_linker.providers.documents.inside.base import (
    Document,
    Part,
    Request,
    damaged,
    missing,
    no_image,
)
from computer_linker.providers.documents.inside.grid import MAX_COLUMN, Area, Lines, area_of

_SAMPLE = 65_536
_TYPED_ROWS = 1000
_MAX_FIELD = 1 << 20


def separated(file: BinaryIO, request: Request) -> Document:
    """Rows of a CSV or TSV file; `range` counts columns as letters and rows from 1 after the header, as 5:20 or A1:C9."""
    if request.wants_image:
        no_image("table")
    sample = file.read(_SAMPLE)
    file.seek(0)
    charset = "utf-16" if sample[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = io.TextIOWrapper(file, charset, errors="replace", newline="")
    csv.field_size_limit(_MAX_FIELD)
    head = sample.decode(charset, "replace")
    delimiter = _delimiter(head)
    try:
        rows = csv.reader(text, delimiter=delimiter)
        header = next(rows, [])
        first = list(itertools.islice(rows, _TYPED_ROWS))
        types = [_type(column) for column in itertools.zip_longest(*first, fillvalue="")]
        types += ["text"] * (len(header) - len(types))
        return _table("table", request, header, types, itertools.chain(first, rows), None)
    except csv.Error as error:
        raise damaged(f"it is no readable table ({error})") from None


def _delimiter(head: str) -> str:
    line = head.split("\n", 1)[0]
    return max("\t;,|", key=lambda char: (line.count(char), char == ","))


def _type(column: Iterable[str]) -> str:
    """The narrowest type that all values of a column have; empty ones fit every type."""
    kinds = {_kind(value.strip()) for value in column if value.strip()}
    if kinds <= {"integer"}:
        return "integer" if kinds else "empty"
    if kinds <= {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "text"


def _kind(value: str) -> str:
    if value.lower() in ("true", "false"):
        return "boolean"
    digits = value.lstrip("+-")
    if digits.isdecimal() and digits.isascii():
        return "integer" if len(digits) == 1 or digits[0] != "0" else "text"
    if len(value) >= 10 and value[4:5] == "-" and value[7:8] == "-" and value[:4].isdecimal():
        return "date"
    try:
        float(value)
    except ValueError:
        return "text"
    return "number"


def _table(
    kind: str,
    request: Request,
    header: Sequence[str],
    types: Sequence[str],
    rows: Iterable[Sequence[Any]],
    total: int | None,
    skipped: int = 0,
) -> Document:
    wanted = Area(1, 1, MAX_COLUMN, 1 << 62) if request.range is None else area_of(request.range)
    left, right = wanted.left, min(wanted.right, max(len(header), 1))
    shown = [f"{name} ({type})" for name, type in zip(header, types, strict=False)][left - 1 : right]
    lines = Lines(shown, request.max_bytes)
    facts: dict[str, Any] = {"columns": len(header)}
    if total is not None:
        facts["rows"] = total
    for number, row in enumerate(rows, 1 + skipped):
        if number < wanted.top:
            continue
        if number > wanted.bottom or not lines.add(number, [_shown(cell) for cell in row[left - 1 : right]]):
            facts["next"] = {"range": f"{number}:{number + max(lines.last - wanted.top, 99)}"}
            break
    return Document(kind, parts=[Part(1, lines.text())], facts=facts, is_bounded=True)


def _shown(cell: Any) -> str:
    return "" if cell is None else str(cell)


def parquet(file: BinaryIO, request: Request) -> Document:
    """Rows of a Parquet file with the types of its columns."""
    if request.wants_image:
        no_image("table")
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise missing("pyarrow", "A Parquet file") from None
    try:
        found = pyarrow.parquet.ParquetFile(file, memory_map=False)
        schema = found.schema_arrow
        top = 1 if request.range is None else area_of(request.range).top
        skipped, groups = _groups(found.metadata, top)
        rows = _rows(found, groups)
        types = [str(one.type) for one in schema]
        return _table("Parquet table", request, schema.names, types, rows, found.metadata.num_rows, skipped)
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
        raise damaged(f"its Parquet data cannot be read ({str(error)[:200]})") from None


def _groups(metadata: Any, top: int) -> tuple[int, list[int]]:
    """The rows in the row groups before the one with row `top`, and the groups from there."""
    skipped = 0
    for index in range(metadata.num_row_groups):
        size = metadata.row_group(index).num_rows
        if skipped + size >= top:
            return skipped, list(range(index, metadata.num_row_groups))
        skipped += size
    return skipped, []


def _rows(found: Any, groups: list[int]) -> Iterator[list[Any]]:
    for batch in found.iter_batches(batch_size=1000, row_groups=groups, use_threads=False):
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield list(row)
