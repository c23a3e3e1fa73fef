"""get_computer_info as text for a model: scopes, signatures, and descriptions of operations that were asked for by name."""

from collections.abc import Iterator
from typing import Any

from pydantic_core import to_json

from computer_linker.model.network import shown_network
from computer_linker.registry.cli_options import fields_of, type_name
from computer_linker.registry.text import Text

MOST_USED = (
    "file.read file.write file.patch file.search file.find file.tree command.run git.status git.diff batch.run".split()
)
"""The operations whose signatures the description of computer_operation shows."""
_FREQUENT = frozenset(name.partition(".")[0] for name in MOST_USED)

_SAY_NOTHING = frozenset({"text", "object", "value", "list"})
_LONGEST_KIND = 60
_SHOWN: dict[str, str] = {}
"""Descriptions of operations as text, which are constant."""


def _scopes_shown(scopes: Any) -> str:
    """One line a scope: what it is, what it allows, and what holds."""
    lines = []
    for scope in scopes:
        policy = scope["capabilityPolicy"]
        boundary = policy["boundary"].get("commands")
        facts = [f"network {shown_network(policy['network'])}", f"confirm {policy['confirm']}"]
        facts += [f"commands: {boundary}"] if boundary else []
        lines.append(f"scope {scope['id']} ({scope['type']}): {' '.join(scope['capabilities'])}; {'; '.join(facts)}")
    return "\n".join(lines)


def _operations_shown(operations: Any) -> str:
    """Each operation with its signature, its purpose, what its fields mean, and an example."""
    for op in operations:
        if op["name"] not in _SHOWN:
            _SHOWN[op["name"]] = _operation_shown(op)
    return "\n".join(_SHOWN[op["name"]] for op in operations)


def _operation_shown(op: dict[str, Any]) -> str:
    lines = [op["signature"], op["summary"]]
    for part in ("input", "options"):
        lines += _fields_shown(part, op[part], (op[part] or {}).get("$defs", {}))
    request = {name: value for name, value in op["example"].items() if name != "title"}
    return "\n".join([*lines, f"example: {to_json({'op': op['name'], **request}).decode()}", ""])


def _fields_shown(place: str, schema: dict[str, Any] | None, known: dict[str, Any]) -> Iterator[str]:
    """A line for each field, those of a list's items below it."""
    for name, field in fields_of(schema).items():
        if field.get("deprecated"):
            continue
        item = _item_of(field, known)
        kind, about = "list" if item is not None else type_name(field), field.get("description", "")
        # The signature has the name, and that a value is a text is no news.
        if about or kind not in _SAY_NOTHING:
            yield f"{place}.{name}: {kind if len(kind) <= _LONGEST_KIND else 'value'}. {about}".rstrip()
        yield from _fields_shown(f"{place}.{name}[]", item, {})


def _item_of(field: dict[str, Any], known: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of a list's items that are objects; None for any other field."""
    lists = (choice["items"] for choice in field.get("anyOf", [field]) if "items" in choice)
    found = next((known.get(str(item.get("$ref", "")).rpartition("/")[2]) for item in lists), None)
    return found if found is not None and "properties" in found else None


def shortened(signatures: dict[str, list[str]], by: int) -> dict[str, list[str]]:
    """The signatures with those of the longest nouns as names alone, until they are shorter by so many bytes."""
    made = dict(signatures)
    seldom = sorted(
        (noun for noun in signatures if noun not in _FREQUENT), key=lambda noun: _size(signatures[noun]), reverse=True
    )
    named: list[str] = []
    for noun in seldom:
        if by + _size(_where(named)) <= 0:
            break
        verbs = ", ".join(line.partition("(")[0].partition(".")[2] for line in signatures[noun])
        made[noun] = [f"{noun}.{{{verbs}}}"]
        named.append(noun)
        by -= _size(signatures[noun]) - _size(made[noun])
    return {**made, "": _where(named)}


def _where(nouns: list[str]) -> list[str]:
    patterns = ", ".join(f'"{noun}.*"' for noun in sorted(nouns))
    return [f'Signatures of those in braces: get_computer_info {{"operations": [{patterns}]}}'] if nouns else []


def _size(lines: list[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _signatures_shown(signatures: Any) -> str:
    return "\n".join(line for lines in signatures.values() for line in lines)


def _programs_shown(programs: Any) -> str:
    lines = ["programs: " + " ".join(name for name, program in programs.items() if program["available"])]
    missing = [(name, program) for name, program in programs.items() if not program["available"] and program["remedy"]]
    return "\n".join(
        [*lines, *(f"missing: {name}, for {one.get('purpose', name)}. {one['remedy']}" for name, one in missing)]
    )


def _tools_shown(tools: Any) -> str:
    """One program a line: its version and path, or how to get it."""
    return "\n".join(
        " ".join(filter(None, (name, tool["version"], tool["path"])))
        if tool["available"]
        else f"{name} is absent: {tool['remedy']}"
        for name, tool in tools.items()
    )


def _platform_shown(platform: Any) -> str:
    facts = [platform[name] for name in ("os", "arch", "release", "shell", "runtime") if platform.get(name)]
    return f"platform: {', '.join(facts)}"


def _status_shown(status: Any) -> str:
    lines = [f"not ready: {reason}" for reason in status.get("blockingReasons", ())] or ["ready"]
    return "\n".join([*lines, *(f"warning: {warning}" for warning in status.get("warnings", ()))])


INFO_ASKED = Text(
    {
        "platform": _platform_shown,
        "status": _status_shown,
        "scopes": _scopes_shown,
        "signatures": _signatures_shown,
        "tools": _tools_shown,
        "operations": _operations_shown,
    }
)
"""The parts that were asked for."""
INFO_SHOWN = Text(
    {**INFO_ASKED.fields, "tools": _programs_shown}, quiet=frozenset({"machineId", "exposure", "service", "policy"})
)
"""The default answer."""
