"""JSON Schemas of the tools: constant, derived from the catalogue alone, independent of any workspace content."""

from typing import Any

from computer_linker.model.history import VIEWS
from computer_linker.model.info import INFO_PARTS
from computer_linker.registry.operation import Operation

_TARGET = {
    "description": "A path, an id, or for desktop acts a reference, selector or point.",
    # Several types by anyOf: some clients do not support a list of types.
    "anyOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}],
}
_CONFIRM = {
    "type": "object",
    "description": "Of confirm.issue, once approved.",
    "properties": {"token": {"type": "string"}},
    "required": ["token"],
    "additionalProperties": False,
}

INFO_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "include": {
            "type": "array",
            "items": {"type": "string", "enum": list(INFO_PARTS)},
            "description": "These parts in full. Left out: a short form of all.",
        },
        "operations": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Schemas and an example of these, as file.patch or git.*",
        },
    },
    "additionalProperties": False,
}
HISTORY_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "scope": {"type": "string"},
        "view": {"type": "string", "enum": list(VIEWS), "default": "last"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 500},
        "query": {"type": "string", "description": "Words, or terms as op:file.write ok:false since:2026-01-31"},
        "cursor": {"type": "string"},
    },
    "additionalProperties": False,
}


def operation_input() -> dict[str, Any]:
    """The envelope's schema."""
    return {
        "type": "object",
        "properties": {
            "scope": {"type": "string", "description": "A scope id of get_computer_info."},
            "op": {"type": "string"},
            "target": _TARGET,
            "input": {"type": "object"},
            "options": {"type": "object"},
            "confirm": _CONFIRM,
        },
        "required": ["scope", "op"],
        "additionalProperties": False,
    }


def observe_input() -> dict[str, Any]:
    """The same without `confirm`: what only observes is never asked about."""
    schema = operation_input()
    return {**schema, "properties": {name: part for name, part in schema["properties"].items() if name != "confirm"}}


def expanded_input(operation: Operation) -> dict[str, Any]:
    """The schema of the tool for one operation."""
    from computer_linker.registry.schema import parameter_schemas

    properties: dict[str, Any] = {"scope": {"type": "string", "description": "A scope id of get_computer_info."}}
    parameters = parameter_schemas(operation)
    properties.update(parameters.properties)
    properties["confirm"] = _CONFIRM
    return {
        "type": "object",
        "properties": properties,
        "required": ["scope", *parameters.required],
        "additionalProperties": False,
    }
