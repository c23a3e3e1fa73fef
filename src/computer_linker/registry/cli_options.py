"""Derives the command line of an operation: the help of `op NAME`, and its `key=value` arguments as JSON values."""

import json
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from computer_linker.errors import InvalidRequest
from computer_linker.model.json_text import read_json
from computer_linker.registry.operation import Operation
from computer_linker.registry.schema import parameter_schemas

ReadFile = Callable[[str], str]


def help_text(op: Operation) -> str:
    """What `op NAME --help` prints: purpose, needs, every field with type and default, examples."""
    parts = parameter_schemas(op)
    lines = [f"Usage: computer-linker op {op.name}{_usage(parts.properties, parts.required)}", ""]
    lines += [textwrap.fill(op.summary, 96, initial_indent="  ", subsequent_indent="  "), ""]
    needs = " ".join(sorted(op.needs)) or (" or ".join(sorted(op.needs_any)) if op.needs_any else "nothing")
    lines.append(f"  Needs {needs}; effect: {op.effect.value}; scope: {op.on}.")
    for part in ("target", "input", "options"):
        if part in parts.properties:
            lines += ["", *_part_help(part, parts.properties[part], part in parts.required)]
    lines += ["", "Examples:"]
    for example in op.examples:
        lines += [f"  {example.title}", f"    {command_line(op.name, example.request)}"]
    return "\n".join(lines) + "\n"


def command_line(name: str, request: dict[str, Any]) -> str:
    """An example's request as a command line that can be pasted."""
    import shlex

    words = ["computer-linker", "op", name]
    target = request.get("target")
    if target is not None:
        words.append(target if isinstance(target, str) else json.dumps(target))
    words += ["--scope", str(request.get("scope", "app"))]
    for part, flag in (("input", "--input"), ("options", "--option")):
        for key, value in request.get(part, {}).items():
            words += [flag, f"{key}={value if _is_plain(value) else json.dumps(value)}"]
    return shlex.join(words)


def read_arguments(op: Operation, part: str, words: Iterable[str], read_file: ReadFile) -> dict[str, Any]:
    """Parse the `--input`/`--option` arguments: JSON objects or key=value, typed by the operation's schema."""
    schema = parameter_schemas(op).properties.get(part)
    values: dict[str, Any] = {}
    for word in words:
        if word.lstrip().startswith("{"):
            values.update(_object(part, word))
            continue
        key, separator, text = word.partition("=")
        if not separator:
            raise InvalidRequest(f"--{part.rstrip('s')} takes key=value or a JSON object, not {word!r}.")
        values[key] = _typed(fields_of(schema).get(key, {}), text, read_file)
    return values


def fields_of(schema: dict[str, Any] | None) -> dict[str, Any]:
    """The fields of an input or options schema, with references resolved one level deep."""
    if schema is None:
        return {}
    resolved = _resolved(schema, schema)
    fields: dict[str, Any] = {}
    for name, field in resolved.get("properties", {}).items():
        fields[name] = {**_resolved(field, schema), **{k: v for k, v in field.items() if k != "$ref"}}
    return fields


def type_name(field: dict[str, Any]) -> str:
    """A short name of a field's type, for people."""
    if "const" in field:
        return json.dumps(field["const"])
    if "enum" in field:
        return " or ".join(str(value) for value in field["enum"])
    if "anyOf" in field:
        names = [type_name(choice) for choice in field["anyOf"] if choice.get("type") != "null"]
        return " or ".join(dict.fromkeys(names))
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[-1]
    if field.get("type") == "array":
        return f"list of {type_name(field.get('items', {}))}"
    return {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(
        str(field.get("type", "value")), str(field.get("type", "value"))
    )


def read_value(text: str) -> Any:
    """Parse a value as JSON where it is JSON, else return the text itself."""
    try:
        return read_json(text)
    except InvalidRequest:
        return text


def _usage(properties: dict[str, Any], required: list[str]) -> str:
    words = ""
    if "target" in properties:
        words += " TARGET" if "target" in required else " [TARGET]"
    words += " --scope SCOPE"
    if "input" in properties:
        words += " --input KEY=VALUE..." if "input" in required else " [--input KEY=VALUE...]"
    return words + (" [--option KEY=VALUE...]" if "options" in properties else "") + " [--json]"


def _part_help(part: str, schema: dict[str, Any], needed: bool) -> list[str]:
    if part == "target":
        return ["Target:", f"  {type_name(schema)}{'' if needed else ', may be left out'}"]
    title = {"input": "Input (--input key=value):", "options": "Options (--option key=value):"}[part]
    required = _resolved(schema, schema).get("required", [])
    rows = [(name, _described(name, field, required)) for name, field in fields_of(schema).items()]
    width = max((len(name) for name, _ in rows), default=0)
    return [title, *(f"  {name.ljust(width)}  {text}" for name, text in rows)]


def _described(name: str, field: dict[str, Any], required: list[str]) -> str:
    words = type_name(field)
    if name in required:
        words += ", needed"
    elif field.get("default") is not None:
        words += f", default {json.dumps(field['default'])}"
    return f"{words}. {field['description']}" if field.get("description") else words


def _typed(field: dict[str, Any], text: str, read_file: ReadFile) -> Any:
    if text.startswith("@@"):
        text = text[1:]
    elif text.startswith("@") and len(text) > 1:
        return read_file(text[1:])
    # A field that can only be text takes the argument as it is: `query=123` searches for 123.
    return text if _only_text(field) else read_value(text)


def _only_text(field: dict[str, Any]) -> bool:
    choices = [choice for choice in field.get("anyOf", [field]) if choice.get("type") != "null"]
    return bool(choices) and all(choice.get("type") == "string" for choice in choices)


def _object(part: str, word: str) -> dict[str, Any]:
    try:
        value = read_json(word)
    except InvalidRequest as error:
        raise InvalidRequest(f"--{part.rstrip('s')} begins like a JSON object and is none: {error.message}") from None
    if not isinstance(value, dict):
        raise InvalidRequest(f"--{part.rstrip('s')} takes key=value or a JSON object.")
    return value


def _resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    for choice in schema.get("anyOf", ()):
        if "$ref" in choice and "properties" not in schema:
            return _resolved(choice, whole)
    name = schema.get("$ref")
    if name is None:
        return schema
    found: dict[str, Any] = whole.get("$defs", {}).get(str(name).rsplit("/", 1)[-1], {})
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and not value.startswith("@") and read_value(value) == value
