"""Translates an older request, flat or in an envelope, to the equivalent call. The dispatcher makes every decision."""

from typing import Any

from computer_linker.errors import InvalidRequest, UnknownOperation
from computer_linker.model.history import VIEWS
from computer_linker.registry.catalog import FIELDS, OLDER, Catalog, Older

_ENVELOPE = ("target", "input", "options")


def translate(catalog: Catalog, name: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """The call without its scope. Raises UnknownOperation for an unknown name, InvalidRequest for a bad shape."""
    if type(name) is not str or not name:
        raise InvalidRequest("`operation` names what to do, such as read or git_diff.")
    older = OLDER.get(name)
    if older is None and name in catalog.by_name:
        return _renamed(name, _only_envelope(fields))
    if older is None or older.op not in catalog.by_name:
        raise UnknownOperation(f"There is no operation {name[:80]!r}.")
    if name == "batch":
        return _batch(catalog, fields)
    if name == "explain_operation":
        return _explain(catalog, fields)
    if name == "edit":
        fields = _edit(fields)
    if name == "history_insight":
        older, fields = _insight(fields)
    return _sorted(catalog, older, fields)


def _sorted(catalog: Catalog, older: Older, fields: dict[str, Any]) -> dict[str, Any]:
    """Put each flat field where the operation's schema has it; an unknown field goes to options, to be refused there."""
    from computer_linker.registry.schema import parameter_schemas

    properties = parameter_schemas(catalog.by_name[older.op]).properties
    known = set(properties.get("input", {}).get("properties", {}))
    parts: dict[str, dict[str, Any]] = {"input": dict(older.input), "options": {}}
    target = fields.get("target")
    for part in ("input", "options"):
        given = fields.get(part)
        if given is not None and type(given) is not dict:
            raise InvalidRequest(f"`{part}` is an object.")
        for given_name, value in (given or {}).items():
            name = str(given_name)
            if name in older.target and target is None and name not in known:
                target = value
                continue
            name, value = _current(older.renamed, name, value)
            parts[part][name] = value
    for key, value in fields.items():
        if key in _ENVELOPE or value is None:
            continue
        if key in older.target and target is None:
            target = value
            continue
        key, value = _current(older.renamed, key, value)
        parts["input" if key in known else "options"][key] = value
    call: dict[str, Any] = {"op": older.op, **{part: value for part, value in parts.items() if value}}
    return call if target is None else {**call, "target": target}


def _current(renamed: dict[str, str], name: str, value: Any) -> tuple[str, Any]:
    """A field under its own name; the opposite of a flag that was named the other way round."""
    own = renamed.get(name, name)
    if own.startswith("!"):
        return own[1:], not value if type(value) is bool else value
    return own, value


def _renamed(name: str, call: dict[str, Any]) -> dict[str, Any]:
    """A call under the operation's own name, with the other names of its options replaced."""
    options, others = call.get("options"), FIELDS.get(name)
    if others is None or type(options) is not dict:
        return {"op": name, **call}
    made = dict(_current(others, key, value) for key, value in options.items())
    if len(made) != len(options):
        raise InvalidRequest("An option is given under two names.")
    return {"op": name, **call, "options": made}


def _only_envelope(fields: dict[str, Any]) -> dict[str, Any]:
    unknown = fields.keys() - set(_ENVELOPE)
    if unknown:
        raise InvalidRequest(f"Unknown field {min(unknown)!r}. A dotted operation takes target, input and options.")
    return {key: value for key, value in fields.items() if value is not None}


def _inner(catalog: Catalog, item: Any) -> dict[str, Any]:
    if type(item) is not dict:
        raise InvalidRequest("Each operation is an object.")
    name = item.get("operation", item.get("op"))
    return translate(catalog, name, {key: value for key, value in item.items() if key not in ("op", "operation")})


def _batch(catalog: Catalog, fields: dict[str, Any]) -> dict[str, Any]:
    given = fields.get("input")
    flat = {**(given if type(given) is dict else {}), **fields}
    items = flat.get("operations")
    if type(items) is not list:
        raise InvalidRequest("batch needs `operations`, a list.")
    options = fields.get("options") or {}
    if type(options) is not dict:
        raise InvalidRequest("`options` is an object.")
    if "stopOnError" in flat:
        options = {**options, "stopOnError": flat["stopOnError"]}
    if any(_is_batch(item) for item in items):
        raise InvalidRequest("A batch holds no batches.")
    inner = [_inner(catalog, item) for item in items]
    return {"op": "batch.run", "input": {"operations": inner}, **({"options": options} if options else {})}


def _is_batch(item: Any) -> bool:
    return type(item) is dict and item.get("operation", item.get("op")) in ("batch", "batch.run")


def _explain(catalog: Catalog, fields: dict[str, Any]) -> dict[str, Any]:
    given = fields.get("input")
    flat = {**(given if type(given) is dict else {}), **{key: value for key, value in fields.items() if key != "input"}}
    flat.setdefault("operation", flat.pop("explain", flat.pop("name", flat.get("target"))))
    flat.pop("target", None)
    if flat["operation"] in ("explain_operation", "computer.explain"):
        raise InvalidRequest("An explanation explains another operation.")
    return {"op": "computer.explain", "input": _inner(catalog, flat)}


def _edit(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert `oldText` and `newText` beside the path to one edit."""
    names = ("oldText", "newText", "replaceAll")
    one = {name: fields[name] for name in names if name in fields}
    if not one:
        return fields
    return {**{key: value for key, value in fields.items() if key not in names}, "edits": [one]}


def _insight(fields: dict[str, Any]) -> tuple[Older, dict[str, Any]]:
    view = fields.get("view", "last")
    if view not in VIEWS:
        raise InvalidRequest(f"`view` is one of {', '.join(VIEWS)}.")
    return Older(f"history.{view}", "read", ()), {key: value for key, value in fields.items() if key != "view"}
