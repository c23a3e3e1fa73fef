"""Answers with made-up values, for the reference: of examples that need a desktop, a browser or an agent to be run."""

from typing import Any

from computer_linker.model.effect import Effect
from computer_linker.registry.operation import Operation
from computer_linker.registry.schema import result_schema

_TEXTS = {
    "path": "notes.txt", "name": "Save", "title": "Notes", "role": "button", "ref": "e1", "app": "editor", 
    "url": "https://example.org/",
    "text": "some text", "status": "running", "method": "accessibility", "format": "png", "source": "screen",
    "mimeType": "image/png",
    "startedAt": "2026-01-31T12:00:00Z", "endedAt": "2026-01-31T12:00:00Z", "finalMessage": "The tests pass.",
}  # fmt: skip
"""Values of common fields; another text is the field's own name."""
_MOST_DEPTH = 6


def sample_answer(op: Operation) -> dict[str, Any]:
    """The envelope of a success of this operation; each value is made up, from the schema of the result."""
    schema = result_schema(op)
    effect = {} if op.effect is Effect.OBSERVE else {"effect": "confirmed"}
    return {
        "ok": True,
        "operationId": "01JA0000000000000000000000",
        "scope": "screen" if op.on == "computer" else "app",
        "op": op.name,
        "startedAt": "2026-01-31T12:00:00Z",
        "durationMs": 1.5,
        "data": _value(schema, schema.get("$defs", {}), "data", 0),
        "warnings": [],
        **effect,
    }


def _value(schema: dict[str, Any], known: dict[str, Any], name: str, depth: int) -> Any:
    if "$ref" in schema:
        return _value(known[schema["$ref"].rpartition("/")[2]], known, name, depth)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    choices = schema.get("anyOf") or schema.get("oneOf") or []
    if {"type": "null"} in choices and name not in _TEXTS:
        return None
    if choices:
        return _value(choices[0], known, name, depth)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {}) if depth < _MOST_DEPTH else {}
            return {each: _value(of, known, each, depth + 1) for each, of in fields.items()}
        case "array":
            items = schema.get("items") if depth < _MOST_DEPTH else None
            return [_value(items, known, name.removesuffix("s"), depth + 1)] if isinstance(items, dict) else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            # What is not the rule (truncated, timed out) is left out of a text.
            return False
        case _:
            return _TEXTS.get(name, name)
