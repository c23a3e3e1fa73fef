"""Renders a result as text for a model: contents as they are, and nothing that is empty, a default or repeated.

The renderer is generic. An operation whose result reads better another way gives a `Text` beside its definition: how a field
is shown, which fields are left out, and the line in front.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

Show = Callable[[Any], str]
_QUIET = frozenset({"engine", "boundary", "startedAt", "durationMs", "elapsedMs", "sha256", "executionId", "mode"})
"""Facts of most results that a model does not act on; programs find them in the JSON."""
_JOIN = "  "


@dataclass(frozen=True, slots=True)
class Text:
    """How a result is shown to a model."""

    fields: Mapping[str, Show] = field(default_factory=dict)
    """Renderers of single fields, each as a block of its own."""
    head: Callable[[dict[str, Any]], str] | None = None
    """The first line; by default the short facts."""
    quiet: frozenset[str] = frozenset()
    """Fields that are not shown."""
    always: frozenset[str] = frozenset()
    """Fields that are shown although most results leave them out."""
    empty: str = "done"
    """What is shown when nothing else is."""


PLAIN = Text()


def render(data: Any, how: Text = PLAIN, target: Any = None) -> str:
    """The text of a result's plain JSON values. What only repeats the request's target is left out."""
    if not isinstance(data, dict):
        return _value(data)
    facts: list[str] = []
    blocks: list[str] = []
    quiet = (_QUIET | how.quiet) - how.always
    for name, value in data.items():
        if name in quiet or _is_nothing(value) or (isinstance(value, str) and value == target and how.head is None):
            continue
        if name in how.fields:
            blocks.append(how.fields[name](value))
        elif _is_short(value):
            facts.append(f"{name}: {_value(value)}")
        else:
            blocks.append(_block(name, value))
    first = how.head(data) if how.head is not None else ", ".join(facts)
    return "\n".join(part.rstrip("\n") for part in (first, *blocks) if part.strip()) or how.empty


def rows(template: str) -> Show:
    """Show a list of objects one a line, by a template such as `{path}:{line}: {preview}`."""

    def show(items: Any) -> str:
        return "\n".join(template.format_map(_Gaps(item)).rstrip() for item in items)

    return show


def verbatim(value: Any) -> str:
    """Show a text as it is."""
    return str(value)


def tree(entries: Any) -> str:
    """Show paths as an indented tree, each folder once; folders end in a slash."""
    lines: list[str] = []
    shown: set[str] = set()
    for entry in sorted(entries, key=lambda entry: entry["path"].split("/")):
        parts = entry["path"].split("/")
        for depth in range(len(parts)):
            folder = "/".join(parts[: depth + 1])
            if folder in shown:
                continue
            shown.add(folder)
            is_folder = depth < len(parts) - 1 or entry["type"] in ("directory", "folder", "dir")
            lines.append(" " * depth + parts[depth] + ("/" if is_folder else ""))
    return "\n".join(lines)


def table(items: Any) -> str:
    """Show a list of objects as a table without the columns that are empty everywhere."""
    names = list(dict.fromkeys(name for item in items for name in item))
    kept = [name for name in names if name not in _QUIET and any(not _is_nothing(item.get(name)) for item in items)]
    lines = [_JOIN.join(kept)] if len(kept) > 1 else []
    lines += [_JOIN.join(_cell(item.get(name)) for name in kept) for item in items]
    return "\n".join(lines)


class _Gaps(dict[str, Any]):
    """The values of a row: null and absent ones are empty, and a list's items lie on lines of their own."""

    def __missing__(self, key: str) -> str:
        return ""

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key) if key in self else ""
        return "" if value is None else value


def _block(name: str, value: Any) -> str:
    if isinstance(value, str):
        return f"{name}:\n{value}"
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        flat = all(_is_short(part) or _is_nothing(part) for item in value for part in item.values())
        return f"{name}:\n" + (table(value) if flat else "\n".join(_json(item) for item in value))
    if isinstance(value, list):
        return f"{name}:\n" + "\n".join(_value(item) for item in value)
    return f"{name}: {_value(value)}"


def _value(value: Any) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _json({name: part for name, part in value.items() if not _is_nothing(part)})
    if isinstance(value, list) and all(_is_short(item) for item in value):
        return ", ".join(_value(item) for item in value)
    if isinstance(value, float):
        return f"{value:g}"
    return _json(value)


def _cell(value: Any) -> str:
    return "-" if _is_nothing(value) else _value(value)


def _json(value: Any) -> str:
    return to_json(value).decode()


def _is_nothing(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return "\n" not in value and len(value) <= 200
    if isinstance(value, list):
        return len(value) <= 4 and all(isinstance(item, str | int) and len(str(item)) <= 40 for item in value)
    return isinstance(value, bool | int | float) or (isinstance(value, dict) and len(_json(value)) <= 200)
