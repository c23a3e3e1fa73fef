"""JSON Schemas of the tools: constant, derived from the catalogue alone, independent of any workspace content."""

from typing import Any

from computer_linker.registry.operation import Operation

_TARGET = {
    "description": "What the operation is about: a path relative to the scope's root, a process, display or window id, "
    "or for desktop acts a reference, selector or point.",
    # Several types by anyOf: some clients do not support a list of types.
    "anyOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}],
}
_CONFIRM = {
    "type": "object",
    "description": "The token of confirm.issue, once a person has approved it.",
    "properties": {"token": {"type": "string"}},
    "required": ["token"],
    "additionalProperties": False,
}

INFO_PARTS = ["identity", "platform", "service", "tools", "scopes", "policy", "status", "operations", "exposure"]
INFO_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "include": {
            "type": "array",
            "items": {"type": "string", "enum": INFO_PARTS},
            "description": "These parts in full. Left out: a short form of all, and a signature of each operation.",
        },
        "operations": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Schemas and an example of these, such as file.patch or git.*",
        },
    },
    "additionalProperties": False,
}
INFO_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "machineId": {"type": "string"},
        "machineName": {"type": "string"},
        "platform": {"type": "object"},
        "service": {"type": "object"},
        "tools": {"type": "object"},
        "scopes": {"type": "array", "items": {"type": "object"}},
        "policy": {"type": "object"},
        "status": {"type": "object"},
        "operations": {"type": "array", "items": {"type": "object"}},
        "signatures": {"type": "object"},
        "capabilities": {"type": "object"},
        "exposure": {"type": "object"},
    },
}
HISTORY_VIEWS = ["last", "timeline", "sessions", "connections", "failed_replay", "debug_bundle"]
HISTORY_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "scope": {
            "type": "string",
            "description": "Only this scope. Left out: every scope whose history you may read.",
        },
        "view": {"type": "string", "enum": HISTORY_VIEWS},
        "limit": {"type": "integer", "minimum": 1, "maximum": 500},
        "query": {"type": "string", "description": "Words, or terms such as op:file.write ok:false since:2026-01-31."},
        "cursor": {"type": "string", "description": "`nextCursor` of the page before."},
    },
    "required": ["view"],
    "additionalProperties": False,
}
HISTORY_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "view": {"type": "string"},
        "events": {"type": "array", "items": {"type": "object"}},
        "nextCursor": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
}


def operation_input(names: list[str]) -> dict[str, Any]:
    """The envelope's schema with the names of the operations."""
    return {
        "type": "object",
        "properties": {
            "scope": {"type": "string", "description": "A scope id of get_computer_info."},
            "op": {"type": "string", "description": "One of: " + " ".join(names)},
            "target": _TARGET,
            "input": {"type": "object", "description": "What the operation needs."},
            "options": {"type": "object", "description": "Limits, filters and formats."},
            "confirm": _CONFIRM,
        },
        "required": ["scope", "op"],
        "additionalProperties": False,
    }


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
