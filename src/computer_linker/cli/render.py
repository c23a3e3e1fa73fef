"""The result of any operation as text for a person: fields as rows, lists as tables."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any, cast

from computer_linker.cli.history_table import len_of, print_events
from computer_linker.cli.output import say, table
from computer_linker.model.history import HistoryEvent

_MAX_DEPTH = 3
_GAP = 2
_LEAST = 60


def print_result(data: Any) -> None:
    """Print a result. Nothing of it is left out: what fits no table is printed as rows below its name."""
    if isinstance(data, Mapping):
        _print_object(data, "")
    elif isinstance(data, Sequence) and not isinstance(data, str):
        _print_list(data, "")
    else:
        table([[_text(data)]])


def _print_object(value: Mapping[str, Any], name: str, depth: int = 0) -> None:
    plain = {key: item for key, item in value.items() if _is_plain(item)}
    if name:
        say(f"\n{name}")
    if plain:
        table([[key, _text(item)] for key, item in plain.items() if item is not None] or [["(empty)", ""]])
    for key, item in value.items():
        if key in plain:
            continue
        below = f"{name}.{key}" if name else key
        if isinstance(item, Mapping) and depth < _MAX_DEPTH:
            _print_object(item, below, depth + 1)
        elif isinstance(item, list) and depth < _MAX_DEPTH:
            _print_list(item, below)
        else:
            say(f"\n{below}")
            table([[_json(item)]])


def _print_list(items: Sequence[Any], name: str) -> None:
    if name:
        say(f"\n{name}")
    rows = [item for item in items if isinstance(item, Mapping)]
    if not rows or len(rows) < len(items):
        table([[_text(item) if _is_plain(item) else _json(item)] for item in items])
        return
    if all({"operationId", "outcome", "summary"} <= row.keys() for row in rows):
        print_events(cast(list[HistoryEvent], rows))
        return
    columns = list(dict.fromkeys(key for row in rows for key, item in row.items() if item not in (None, "", [], {})))
    shown = [[_cell(row.get(key)) for key in columns] for row in rows]
    widths = [max(len_of(cell) for cell in column) for column in zip(columns, *shown, strict=True)]
    if sum(widths) + _GAP * len(widths) <= max(shutil.get_terminal_size().columns, _LEAST):
        table(shown, columns)
        return
    # Folded into narrow columns it could not be read: each item as rows of its own instead.
    for at, cells in enumerate(shown):
        if at:
            say()
        table([[column, cell] for column, cell in zip(columns, cells, strict=True) if cell])


def _is_plain(item: Any) -> bool:
    is_words = isinstance(item, list) and len(item) < 20 and all(isinstance(one, str | int | float) for one in item)
    return item is None or isinstance(item, str | int | float) or item in ({}, []) or is_words


def _cell(item: Any) -> str:
    return _text(item) if _is_plain(item) else _json(item)


def _text(item: Any) -> str:
    if item is None or item in ({}, []):
        return ""
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, list):
        return ", ".join(map(str, item))
    return str(item)


def _json(item: Any) -> str:
    import json

    return json.dumps(item, ensure_ascii=False)
