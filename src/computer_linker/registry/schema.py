"""JSON Schemas of an operation's target, input, options and result, derived from its annotations."""

import inspect
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from computer_linker.registry.operation import Operation


@dataclass(frozen=True)
class ParameterSchemas:
    """The schema of each parameter an operation takes, and which must be given."""

    properties: dict[str, Any]
    required: list[str]


def parameter_schemas(operation: Operation) -> ParameterSchemas:
    """Schemas of what a caller may send; each stands by itself, without references between them."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in operation.parameters.items():
        properties[name] = TypeAdapter(operation.hints[name]).json_schema(by_alias=True, mode="validation")
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    return ParameterSchemas(properties, required)


def result_schema(operation: Operation) -> dict[str, Any]:
    """The schema of `data` in a successful envelope."""
    return TypeAdapter(operation.hints["return"]).json_schema(by_alias=True, mode="serialization")
