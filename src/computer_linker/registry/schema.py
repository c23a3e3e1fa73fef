"""JSON Schemas of an operation's target, input, options and result, derived from its annotations."""

import inspect
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from types import UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from computer_linker.model.base import Older
from computer_linker.registry.operation import CWD, Operation, without_none

_CWD_SCHEMA = {"type": "string", "minLength": 1, "description": "The folder that relative paths start from."}


@dataclass(frozen=True)
class ParameterSchemas:
    """The schema of each parameter an operation takes, and which must be given."""

    properties: dict[str, Any]
    required: list[str]


def parameter_schemas(operation: Operation) -> ParameterSchemas:
    """Schemas of what a caller may send; each is self-contained, without references between them."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in operation.parameters.items():
        properties[name] = TypeAdapter(operation.hints[name]).json_schema(by_alias=True, mode="validation")
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    if operation.takes_cwd:
        options = properties.setdefault("options", {"type": "object", "additionalProperties": False})
        options["properties"] = {**options.get("properties", {}), CWD: _CWD_SCHEMA}
    return ParameterSchemas(properties, required)


def result_schema(operation: Operation) -> dict[str, Any]:
    """The schema of `data` in a successful envelope."""
    hint = operation.hints["return"]
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    first, *others = (TypeAdapter(kind).json_schema(by_alias=True, mode="serialization") for kind in kinds)
    for other in others:
        # One of several models: what the others have besides is there in some results.
        for part in ("properties", "$defs"):
            first[part] = {**other.get(part, {}), **first.get(part, {})}
    return first


def request_schema(operations: Iterable[Operation]) -> dict[str, Any]:
    """The JSON Schema of `computer_operation`: one self-contained branch per operation."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "computer_operation",
        "description": "A request to Computer Linker. Unknown fields are refused.",
        "oneOf": [_branch(operation) for operation in operations],
    }


def _branch(operation: Operation) -> dict[str, Any]:
    parameters = parameter_schemas(operation)
    names = [operation.name, *operation.aliases]
    # References are relative to the whole document, so each part's own definitions move to the branch that holds it.
    fields = {name: _inlined(schema) for name, schema in parameters.properties.items()}
    return {
        "title": operation.name,
        "description": operation.summary,
        "type": "object",
        "properties": {
            "scope": {"type": "string", "minLength": 1},
            "op": {"const": names[0]} if len(names) == 1 else {"enum": names},
            **fields,
            "confirm": {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]},
        },
        "required": ["scope", "op", *parameters.required],
        "additionalProperties": False,
    }


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its references replaced by what they name; a model inside itself is left open there."""
    definitions = schema.get("$defs", {})

    def resolve(value: Any, inside: frozenset[str]) -> Any:
        if isinstance(value, list):
            return [resolve(item, inside) for item in value]
        if not isinstance(value, dict):
            return value
        kept = {name: resolve(item, inside) for name, item in value.items() if name not in ("$ref", "$defs")}
        name = str(value.get("$ref", "")).rsplit("/", 1)[-1]
        if name in definitions and name not in inside:
            return {**resolve(definitions[name], inside | {name}), **kept}
        return kept

    inlined: dict[str, Any] = resolve(schema, frozenset())
    return inlined


# One-line signatures of operations, in a form a model reads at once, derived from their annotations.
# `file.read(target, options{startLine?, maxBytes=65536}) → content, sha256?`: a question mark is what may be left
# out or null, `[]` a list, and a default, which is shown where it is not empty or false, may be left out too.

_INCIDENTAL = frozenset(
    "engine boundary signal startedAt durationMs elapsedMs commandPreview dialogOpened view warnings groupedEvents scale area "
    "source hiddenAreas timedOut agent workflow usage threadId turns path size created hooks method executionId machineId "
    "truncated title bytesBase64 fileRef nextCursor dropped waited binaryFiles frames endedBy approved charset total "
    "known fixed parts minutes undoable codexSessions records beginsAt firstBad matrix".split()
)
"""Results that few callers need; a signature leaves them out, a schema has them."""
_SELDOM_GIVEN = frozenset({"executionId", "size", "sha256", "column", "owner", "metadata", "suggest"})
"""Fields that few callers give, such as those of a stream; the same holds for them."""
_KNOWN_SHAPES = frozenset({"region"})
"""Values whose parts need no description: x, y, width and height."""
_MOST_RESULTS = 8


def signature(op: Operation) -> str:
    """The signature of one operation."""
    result = ", ".join(_results(op.hints.get("return")))
    return call_form(op) + (f" → {result}" if result else "")


def call_form(op: Operation, left_out: Collection[str] = ()) -> str:
    """The signature without the result; `...` stands for fields that are left out."""
    return f"{op.name}({', '.join(_parameters(op, left_out))})"


def fields_in(hint: Any) -> dict[str, FieldInfo]:
    """The fields of a parameter's, result's or list item's model by their names on the wire; none for another type."""
    return {name: field for name, field in every_field(hint).items() if not is_older(field)}


def every_field(hint: Any) -> dict[str, FieldInfo]:
    """The same with the fields of older clients."""
    kind = without_none(hint)
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if not all(isinstance(each, type) and issubclass(each, BaseModel) for each in kinds):
        return {}
    # Of one of several models, the fields of each.
    return {field.alias or name: field for each in kinds for name, field in each.model_fields.items()}


def is_older(field: FieldInfo) -> bool:
    """True for a field that only older clients send."""
    return any(isinstance(mark, Older) for mark in field.metadata)


def item_of(hint: Any) -> Any:
    """The type of a list's items; None for what is no list."""
    kind = without_none(hint)
    return get_args(kind)[0] if get_origin(kind) is list and get_args(kind) else None


def _parameters(op: Operation, left_out: Collection[str]) -> list[str]:
    parts = []
    for name in ("target", "input", "options"):
        parameter = op.parameters.get(name)
        if parameter is None:
            continue
        optional = "?" if parameter.default is not inspect.Parameter.empty and name == "target" else ""
        known = {each: field for each, field in fields_in(op.hints[name]).items() if each not in _SELDOM_GIVEN}
        fields = [_field(each, field, left_out) for each, field in known.items() if each not in left_out]
        fields += ["..."] if len(fields) < len(known) else []
        if name == "target" or fields:
            parts.append(f"{name}{optional}" if name == "target" else f"{name}{{{', '.join(fields)}}}")
    return parts


def _field(name: str, field: FieldInfo, left_out: Collection[str]) -> str:
    item = item_of(field.annotation)
    inner = fields_in(item if item is not None else field.annotation)
    shown = name + ("[" if item is not None else "")
    if inner and name not in _KNOWN_SHAPES:
        kept = {each: of for each, of in inner.items() if each not in left_out}
        shown += "{" + ", ".join(each + ("" if of.is_required() else "?") for each, of in kept.items()) + "}"
    shown += "]" if item is not None else ""
    return shown if field.is_required() else shown + (_default(field) or "?")


def _default(field: FieldInfo) -> str:
    default = field.default
    if default is PydanticUndefined or default is None or default is False or default in ("", 0, [], {}):
        return ""
    return "=true" if default is True else f"={default}"


def _results(hint: Any) -> list[str]:
    names = []
    fields = fields_in(hint)
    telling = {name: field for name, field in fields.items() if name not in _INCIDENTAL}
    in_each = [set(fields_in(kind)) for kind in get_args(hint)] if isinstance(hint, UnionType) else []
    for name, field in (telling or fields).items():
        nullable = without_none(field.annotation) is not field.annotation or any(name not in of for of in in_each)
        names.append(name + ("[]" if item_of(field.annotation) is not None else "") + ("?" if nullable else ""))
    return names if len(names) <= _MOST_RESULTS else [*names[:_MOST_RESULTS], "…"]
