"""One-line signatures of operations, in a form a model reads at once, derived from their annotations.

`file.read(target, options{startLine?, maxBytes?=65536}) → content, sha256?`: a question mark is what may be left out or null,
`[]` a list, and a default is shown where it is not empty or false.
"""

import inspect
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from computer_linker.model.base import Older
from computer_linker.registry.operation import Operation, without_none

_INCIDENTAL = frozenset(
    "engine boundary signal startedAt durationMs elapsedMs commandPreview dialogOpened view warnings groupedEvents scale area "
    "source hiddenAreas timedOut agent workflow usage threadId turns path size created hooks method executionId".split()
)
"""Results that few callers need; a signature leaves them out, a schema has them."""
_MOST_RESULTS = 8


def signature(op: Operation) -> str:
    """The signature of one operation."""
    result = ", ".join(_results(op.hints.get("return")))
    return call_form(op) + (f" → {result}" if result else "")


def call_form(op: Operation) -> str:
    """The signature without the result."""
    return f"{op.name}({', '.join(_parameters(op))})"


def fields_in(hint: Any) -> dict[str, FieldInfo]:
    """The fields of a parameter's or a list item's model by their names on the wire; none for another type."""
    return {name: field for name, field in every_field(hint).items() if not is_older(field)}


def every_field(hint: Any) -> dict[str, FieldInfo]:
    """The same with the fields of older clients."""
    kind = without_none(hint)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return {}
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def is_older(field: FieldInfo) -> bool:
    """True for a field that only older clients send."""
    return any(isinstance(mark, Older) for mark in field.metadata)


def item_of(hint: Any) -> Any:
    """The type of a list's items; None for what is no list."""
    kind = without_none(hint)
    return get_args(kind)[0] if get_origin(kind) is list and get_args(kind) else None


def _parameters(op: Operation) -> list[str]:
    parts = []
    for name in ("target", "input", "options"):
        parameter = op.parameters.get(name)
        if parameter is None:
            continue
        optional = "?" if parameter.default is not inspect.Parameter.empty and name == "target" else ""
        fields = [_field(field_name, field) for field_name, field in fields_in(op.hints[name]).items()]
        if name == "target" or fields:
            parts.append(f"{name}{optional}" if name == "target" else f"{name}{{{', '.join(fields)}}}")
    return parts


def _field(name: str, field: FieldInfo) -> str:
    item = item_of(field.annotation)
    inner = fields_in(item if item is not None else field.annotation)
    shown = name + ("[" if item is not None else "")
    if inner:
        shown += "{" + ", ".join(each + ("" if of.is_required() else "?") for each, of in inner.items()) + "}"
    shown += "]" if item is not None else ""
    return shown if field.is_required() else f"{shown}?{_default(field)}"


def _default(field: FieldInfo) -> str:
    default = field.default
    if default is PydanticUndefined or default is None or default is False or default in ("", 0, [], {}):
        return ""
    return "=true" if default is True else f"={default}"


def _results(hint: Any) -> list[str]:
    names = []
    fields = fields_in(hint)
    for name, field in fields.items():
        if name in _INCIDENTAL and len(fields) > 2:
            continue
        nullable = without_none(field.annotation) is not field.annotation
        names.append(name + ("[]" if item_of(field.annotation) is not None else "") + ("?" if nullable else ""))
    return names if len(names) <= _MOST_RESULTS else [*names[:_MOST_RESULTS], "…"]
