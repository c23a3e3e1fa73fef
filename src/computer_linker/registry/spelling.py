"""Requests in other servers' spelling: read where they can mean one thing only, else refused with the corrected request."""

import difflib
from dataclasses import replace
from typing import Any, Literal

from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from computer_linker.errors import InvalidRequest
from computer_linker.model.envelope import CALL_FIELDS, Call, parse_call
from computer_linker.registry.catalog import Catalog
from computer_linker.registry.operation import Operation
from computer_linker.registry.schema import every_field, fields_in, item_of

Part = Literal["target", "input", "options"]
_SPELLINGS: dict[str, str] = {
    **dict.fromkeys(("path", "file", "file_path", "filePath", "filename", "dir", "directory", "folder"), "target"),
    **dict.fromkeys(("cwd", "workdir"), "target"),
    **dict.fromkeys(("cmd", "argv"), "command"),
    **dict.fromkeys(("pattern", "regex"), "query"),
    **dict.fromkeys(("text", "contents", "file_text"), "content"),
    **dict.fromkeys(("old_string", "old_str", "oldString"), "oldText"),
    **dict.fromkeys(("new_string", "new_str", "newString"), "newText"),
    **dict.fromkeys(("dest", "new_path", "newPath"), "destination"),
    "glob": "pattern",
    "tail": "tailLines",
    "head": "lineCount",
}
"""Spellings of other servers, and ours. One that is a field of the operation itself keeps its own meaning."""
_SUGGESTED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("offset", "start", "line"), ("startLine",)),
    **dict.fromkeys(("limit", "count"), ("lineCount", "maxResults")),
    **dict.fromkeys(("timeout", "timeout_seconds", "timeoutMs", "timeout_ms"), ("timeoutSeconds",)),
    **dict.fromkeys(("name", "query"), ("pattern", "symbol")),
    **dict.fromkeys(("include", "includes", "file_pattern", "filePattern", "glob_pattern"), ("glob",)),
    "edits": ("texts",),
    **dict.fromkeys(("files", "file_paths"), ("paths",)),
    **dict.fromkeys(("end_line", "endLine", "end"), ("lineCount",)),
    **dict.fromkeys(("page_number", "pageNumber", "pages"), ("page",)),
    "args": ("command",),
}
"""Names that others use in several meanings: put into the corrected request, never taken as they are."""
_BOTH = {**dict.fromkeys(("context", "context_lines", "contextLines"), ("contextBefore", "contextAfter"))}
"""Names of others for two of ours."""
_OF_PROGRAMS = frozenset({"cwd", "workdir"})
"""The target is the working folder only of operations that run a program."""
_MAX_CORRECTED = 1500
_MAX_ITEMS = 500
"""Longer lists are not respelt: every item costs time on the event loop."""


def read_wire(catalog: Catalog, value: Any) -> Call:
    """The call of a request as it was sent. Raises InvalidRequest, with what would have been right where that is clear."""
    try:
        return parse_call(value)
    except InvalidRequest as error:
        if type(value) is not dict:
            raise
        op = catalog.by_name.get(value["op"]) if type(value.get("op")) is str else None
        beside = {name: part for name, part in value.items() if name not in CALL_FIELDS}
        if op is None or not beside:
            raise
        call = parse_call({name: part for name, part in value.items() if name in CALL_FIELDS})
        taken = _respelled(op, call, beside)
        if taken is None:
            _add_correction(error, op, call, beside)
            raise error from None
        return taken


def read_arguments(op: Operation, call: Call) -> tuple[Call, dict[str, Any]]:
    """The call in our spelling, and its typed arguments. Raises InvalidRequest, with the corrected request where it is clear."""
    try:
        return call, op.parse(call.target, call.input, call.options)
    except InvalidRequest as error:
        taken = _respelled(op, call, {})
        if taken is None:
            clearer = _about_the_rest(op, call) or error
            _add_correction(clearer, op, call, {})
            raise clearer from None
        return taken, op.parse(taken.target, taken.input, taken.options)


def _respelled(op: Operation, call: Call, beside: dict[str, Any]) -> Call | None:
    """The call with every unknown field put where it belongs; None when one of them could not be."""
    parts = _parts(call)
    taken: list[str] = []
    for place, name, value in _unknown(op, parts, beside):
        if place is not None:
            del parts[place][name]
        ours = _ours(op, name)
        if ours is None or not _put(op, parts, ours, value):
            return None
        taken.append(_note(op, name, ours))
    taken += _respell_items(op, parts)
    return _call(call, parts, tuple(taken)) if taken and _parses(op, parts) else None


def _note(op: Operation, name: str, ours: str) -> str:
    return f"`{name}` was read as " + (f"`{ours}`." if name != ours else f"`{_item_field(op)}[0].{name}`.")


def _about_the_rest(op: Operation, call: Call) -> InvalidRequest | None:
    """What is wrong once every field is put right that can be: that one is unknown, not that its neighbour is missing."""
    parts = _parts(call)
    for place, name, value in _unknown(op, parts, {}):
        ours = _ours(op, name)
        if ours is not None and place is not None and _put(op, parts, ours, value):
            del parts[place][name]
    try:
        op.parse(parts["target"], parts["input"] or None, parts["options"] or None)
    except InvalidRequest as error:
        return error
    return None


def _ours(op: Operation, name: str) -> str | None:
    """Our name of another server's field, or of one of ours outside its list, when only one fits this operation."""
    places, items = _places(op), _item_fields(op)
    ours = _SPELLINGS.get(name, name if name in items else None)
    if name in places or ours is None or (name in _OF_PROGRAMS and op.boundary != "sandboxed"):
        return None
    return ours if ours in places or (ours in items and (name == ours or name not in items)) else None


def _put(op: Operation, parts: dict[str, Any], name: str, value: Any) -> bool:
    """Put a value under our name, unless it is there already; False when it is."""
    if name == "target":
        if parts["target"] not in (None, ""):
            return False
        parts["target"] = value
        return True
    place = _places(op).get(name)
    if place is None:
        # A field of the items of the operation's only list of objects: one item, given without its list.
        field = _item_field(op)
        items = parts["input"].setdefault(field, [{}]) if field is not None else [{}, {}]
        if type(items) is not list or len(items) != 1 or type(items[0]) is not dict or name in items[0]:
            return False
        items[0][name] = value
        return True
    if name in parts[place]:
        return False
    parts[place][name] = value
    return True


def _respell_items(op: Operation, parts: dict[str, Any]) -> list[str]:
    """Put the fields of the items of a list under our names; what was renamed."""
    field, known, taken = _item_field(op), _item_fields(op), []
    items = parts["input"].get(field) if field is not None else None
    for at, item in enumerate(items if type(items) is list and len(items) <= _MAX_ITEMS else ()):
        if type(item) is not dict:
            continue
        for name in [name for name in item if name not in known]:
            ours = _ours(op, name)
            if ours in known and ours not in item:
                item[ours] = item.pop(name)
                taken.append(f"`{field}[{at}].{name}` was read as `{ours}`.")
    return taken


def _add_correction(error: InvalidRequest, op: Operation, call: Call, beside: dict[str, Any]) -> None:
    """Add to the error the request with misspelt and misplaced fields put right, where that request is valid."""
    parts = _parts(call)
    known = _places(op)
    # Where lines end is said last: it needs where they begin.
    for place, name, value in sorted(_unknown(op, parts, beside), key=lambda found: found[1].startswith("end")):
        if place is not None:
            del parts[place][name]
        if all(each in known and _put(op, parts, each, value) for each in _BOTH.get(name, ("",))):
            continue
        close = difflib.get_close_matches(to_camel(name) if "_" in name else name, known, n=1, cutoff=0.75)
        ours = name if name in known else _ours(op, name) or _suggested(known, name) or (close[0] if close else None)
        if ours is None or not _put(op, parts, ours, _converted(parts, name, ours, value)):
            return
    _respell_items(op, parts)
    _move_target(op, parts)
    corrected = {"scope": call.scope, "op": call.op, **{name: part for name, part in parts.items() if part}}
    if _parses(op, parts) and len(to_json(corrected)) <= _MAX_CORRECTED:
        error.details["corrected"] = corrected


def _suggested(known: dict[str, Part], name: str) -> str | None:
    return next((ours for ours in _SUGGESTED.get(name, ()) if ours in known), None)


def _converted(parts: dict[str, Any], name: str, ours: str, value: Any) -> Any:
    """The value in our unit: seconds, a number of lines, or one argv array."""
    if type(value) is int and ours == "timeoutSeconds" and name.lower().endswith("ms"):
        return max(1, value // 1000)
    if type(value) is int and ours == "lineCount" and name.startswith("end"):
        first = parts["options"].get("startLine")
        return value - (first if type(first) is int else 1) + 1
    if name == "args" and type(value) is list and type(parts["input"].get("command")) is str:
        return [parts["input"].pop("command"), *value]
    return value


def _move_target(op: Operation, parts: dict[str, Any]) -> None:
    """Put what was given as the target under the one input that is missing, as `*.py` of file.find or `ls` of command.run."""
    if parts["target"] in (None, "") or "input" not in op.parameters or _parses(op, parts):
        return
    missing = [name for name, field in fields_in(op.hints["input"]).items() if field.is_required()]
    if len(missing) == 1 and missing[0] not in parts["input"]:
        moved = {**parts, "target": None, "input": {**parts["input"], missing[0]: parts["target"]}}
        if _parses(op, moved):
            parts.update(moved)


def _unknown(op: Operation, parts: dict[str, Any], beside: dict[str, Any]) -> list[tuple[Part | None, str, Any]]:
    """The fields that the operation does not have where they stand: beside the envelope's own, in input, in options."""
    found: list[tuple[Part | None, str, Any]] = [(None, name, value) for name, value in beside.items()]
    places: tuple[Part, ...] = ("input", "options")
    for place in places:
        known = every_field(op.hints[place]) if place in op.parameters else {}
        found += [(place, name, value) for name, value in parts[place].items() if name not in known]
    return found


def _parts(call: Call) -> dict[str, Any]:
    """Copies of the parts, so that a failed attempt leaves the call as it is."""
    given = {
        name: dict(part) if type(part) is dict else {}
        for name, part in (("input", call.input), ("options", call.options))
    }
    for name, value in given["input"].items():
        if type(value) is list:
            given["input"][name] = [dict(item) if type(item) is dict else item for item in value]
    return {"target": call.target, **given}


def _call(call: Call, parts: dict[str, Any], taken: tuple[str, ...]) -> Call:
    return replace(
        call,
        target=parts["target"],
        input=parts["input"] or None,
        options=parts["options"] or None,
        respelled=(*call.respelled, *taken),
    )


def _parses(op: Operation, parts: dict[str, Any]) -> bool:
    try:
        op.parse(parts["target"], parts["input"] or None, parts["options"] or None)
    except InvalidRequest:
        return False
    return True


def _places(op: Operation) -> dict[str, Part]:
    """The fields of input and options, and which of the two; `target` where the operation takes one."""
    names: dict[str, Part] = {"target": "target"} if "target" in op.parameters else {}
    places: tuple[Part, ...] = ("options", "input")
    for place in places:
        if place in op.parameters:
            names.update(dict.fromkeys(every_field(op.hints[place]), place))
    return names


def _item_field(op: Operation) -> str | None:
    """The operation's only list of objects in its input."""
    fields = fields_in(op.hints["input"]) if "input" in op.parameters else {}
    lists = [name for name, field in fields.items() if fields_in(item_of(field.annotation))]
    return lists[0] if len(lists) == 1 else None


def _item_fields(op: Operation) -> set[str]:
    field = _item_field(op)
    return set(fields_in(item_of(fields_in(op.hints["input"])[field].annotation))) if field is not None else set()
