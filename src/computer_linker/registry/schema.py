"""JSON Schemas of an operation's target, input, options and result, derived from its annotations."""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from computer_linker.registry.operation import CWD, Operation

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
    return TypeAdapter(operation.hints["return"]).json_schema(by_alias=True, mode="serialization")


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
