"""Turns a validation error into one sentence that names the field; input values are never repeated."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ValidationError

from computer_linker.errors import InvalidRequest

_UNKNOWN = "extra_forbidden"


@contextmanager
def explain_validation(place: str) -> Iterator[None]:
    """Raise InvalidRequest for pydantic's ValidationError."""
    try:
        yield
    except ValidationError as error:
        raise explained(error, place) from None


def explained(error: ValidationError, place: str, kind: type[BaseModel] | None = None) -> InvalidRequest:
    """Describe pydantic's finding with our messages and field names; an unknown field gets the list of known ones."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[:10]
    # Of an object that could have been a text, only what is wrong in the object helps.
    found = [item for item in found if item["type"] != "string_type" or item["loc"][-1:] != ("str",)] or found
    problems = [{"field": _field(place, item["loc"]), "problem": _problem(item)} for item in found]
    details: dict[str, Any] = {"problems": problems}
    if kind is not None and found[0]["type"] == _UNKNOWN and len(found[0]["loc"]) == 1:
        details["fields"] = [field.alias or name for name, field in kind.model_fields.items()]
    return InvalidRequest(f"`{problems[0]['field']}`: {problems[0]['problem']}.", **details)


def _field(place: str, location: tuple[Any, ...]) -> str:
    # A union's branch names are part of the location; only real fields and indexes help a reader.
    return ".".join([place, *(str(part) for part in location if isinstance(part, int) or str(part).isidentifier())])


def _problem(item: Any) -> str:
    if item["type"] == _UNKNOWN:
        return "there is no such field"
    if item["type"] == "missing":
        return "is needed"
    return str(item["msg"]).removeprefix("Value error, ").rstrip(".")
