"""What is wrong with a config document: every field at once, with the known name that was probably meant."""

import difflib
import types
from typing import Any, Union, get_args, get_origin

from pydantic import ValidationError

from computer_linker.config.positions import Positions
from computer_linker.config.schema import Config
from computer_linker.errors import Problem
from computer_linker.model.base import Model

Path = tuple[str | int, ...]


def problems_in(error: ValidationError, value: dict[str, Any], at: Positions | None = None) -> list[Problem]:
    """Every problem, one for a field. The file's values are never repeated: one of them is the token."""
    found: dict[Path, Problem] = {}
    for one in error.errors(include_url=False, include_input=False):
        path = _existing(one["loc"], value)
        if one["type"] == "missing":
            path = (*path, str(one["loc"][-1]))
        if one["type"] == "same_id":
            path = ("scopes", one["ctx"]["index"], "id")
        text = _text(one["type"], one["msg"]) + _meant(one["type"], path, value, one.get("ctx", {}))
        found.setdefault(path, Problem(path, text, one["type"]))
    placed = [at.located(problem) if at is not None else problem for problem in found.values()]
    return sorted(placed, key=lambda problem: (problem.line or 0, problem.column or 0))


def similar_field(path: Path) -> str | None:
    """The field that an unknown one was probably meant to be."""
    known = _fields_at(path[:-1])
    near = difflib.get_close_matches(str(path[-1]), known, n=1, cutoff=0.7)
    return near[0] if near else None


def similar_choice(value: Any, expected: str) -> str | None:
    """The choice that a value was probably meant to be; `expected` is pydantic's text, such as `'never', 'act' or 'all'`."""
    near = difflib.get_close_matches(str(value), expected.split("'")[1::2], n=1, cutoff=0.6)
    return near[0] if near else None


def value_at(value: Any, path: Path) -> Any:
    """The part of the document at this path. Raises KeyError."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            raise KeyError(path) from None
    return value


def _existing(location: tuple[str | int, ...], value: Any) -> Path:
    """The location without what is not in the document: pydantic also names the branches of unions."""
    path: list[str | int] = []
    for part in location:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            continue
        path.append(part)
    return tuple(path)


def _text(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "is not a field of the config"
    if kind == "missing":
        return "is needed"
    text = message.removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    return text[:1].lower() + text[1:]


def _meant(kind: str, path: Path, value: dict[str, Any], context: dict[str, Any]) -> str:
    near: str | None = None
    if kind == "extra_forbidden":
        near = similar_field(path)
    elif kind == "literal_error":
        near = similar_choice(value_at(value, path), str(context.get("expected", "")))
    return f"; did you mean `{near}`?" if near else ""


def _fields_at(path: Path) -> list[str]:
    kind: Any = Config
    for part in path:
        if isinstance(part, int):
            continue
        kind = next((_model(f.annotation) for n, f in kind.model_fields.items() if (f.alias or n) == part), None)
        if kind is None:
            return []
    return [field.alias or name for name, field in kind.model_fields.items()]


def _model(annotation: Any) -> type[Model] | None:
    """The model that a field holds, directly, in a list, or as one choice."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    if get_origin(annotation) in (list, Union, types.UnionType):
        return next((found for part in get_args(annotation) if (found := _model(part)) is not None), None)
    return None
