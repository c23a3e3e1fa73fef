"""Turns a validation error into one sentence that names the field; input values are never repeated."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ValidationError

from computer_linker.errors import InvalidRequest


@contextmanager
def explain_validation(place: str) -> Iterator[None]:
    """Raise InvalidRequest for pydantic's ValidationError."""
    try:
        yield
    except ValidationError as error:
        raise explained(error, place) from None


def explained(error: ValidationError, place: str, kind: type[BaseModel] | None = None) -> InvalidRequest:
    """Describe pydantic's finding with our messages and field names; an unknown field gets the list of known ones."""
    problems = [
        {"field": _field(place, item["loc"]), "problem": _problem(item, kind if len(item["loc"]) == 1 else None)}
        for item in error.errors(include_url=False, include_input=False, include_context=False)[:10]
    ]
    first = problems[0]
    return InvalidRequest(f"`{first['field']}`: {first['problem']}.", problems=problems)


def _field(place: str, location: tuple[Any, ...]) -> str:
    # A union's branch names are part of the location; only real fields and indexes help a reader.
    return ".".join([place, *(str(part) for part in location if isinstance(part, int) or str(part).isidentifier())])


def _problem(item: Any, kind: type[BaseModel] | None) -> str:
    if item["type"] == "extra_forbidden":
        known = [] if kind is None else [field.alias or name for name, field in kind.model_fields.items()]
        return f"there is no such field, only {', '.join(known)}" if known else "there is no such field"
    if item["type"] == "missing":
        return "is needed"
    return str(item["msg"]).removeprefix("Value error, ").rstrip(".")
