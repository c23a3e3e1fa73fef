"""Repairs of a config document that does not validate: only where one result is right, and no right is added.

A wrong type whose value has one meaning is converted (`"3939"`), a field that is nearly a known one is renamed unless clients
could then do more than before, an unknown one is removed, the second of two scopes of one id gets another id, and for any other
wrong value the last valid config's is used. In a scope that value could be wider than what was meant: there a choice or a switch
becomes the strictest one, and a list keeps only what it had before, too. What is left is for the owner to correct.
"""

import copy
import json
from dataclasses import dataclass
from itertools import count
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from computer_linker.config.difference import STRICTER, TAKES_AWAY, widens
from computer_linker.config.load import Check, Document, document_of, with_identity
from computer_linker.config.problems import Path, problems_in, similar_choice, similar_field, value_at
from computer_linker.config.schema import Config
from computer_linker.errors import ConfigInvalid, Problem
from computer_linker.model.scope import ScopePolicy

_ROUNDS = 50


@dataclass(frozen=True)
class Mended:
    """The document after the repairs, one sentence for each, and the problems that are left."""

    value: dict[str, Any]
    done: list[str]
    left: list[Problem]


def mended(raw: bytes, last_good: bytes | None, home: FilePath, check: Check | None = None) -> Mended:
    """Repair the file's content; nothing is written. A file that is not JSON is replaced by the last valid one."""
    good = _document(last_good)
    try:
        document = document_of(raw)
    except ConfigInvalid as error:
        if good is None:
            return Mended({}, [], list(error.problems) or [Problem((), error.message)])
        sentence = f"Put back the last valid config, because the file could not be read ({error.message})."
        return Mended(good.value, [sentence], [])
    value = copy.deepcopy(with_identity(document.value, home))
    done: list[str] = []
    for _ in range(_ROUNDS):
        left = _problems(value, check)
        repaired = [made for one in left if (made := _repaired(value, one, good)) is not None]
        done += repaired
        if not repaired:
            break
    return Mended(value, done, left)


def _document(raw: bytes | None) -> Document | None:
    try:
        return document_of(raw) if raw is not None else None
    except ConfigInvalid:
        return None


def _problems(value: dict[str, Any], check: Check | None) -> list[Problem]:
    try:
        config = Config.from_wire(value)
    except ValidationError as error:
        return problems_in(error, value)
    return [Problem((), sentence, "check") for sentence in (check(config) if check is not None else [])]


def _repaired(value: dict[str, Any], problem: Problem, good: Document | None) -> str | None:
    """Repair one field in place and return what was done; None when there is no one right answer."""
    name = ".".join(str(part) for part in problem.field)
    if not problem.field:
        return None
    if problem.kind == "extra_forbidden":
        return _renamed(value, problem.field, name, good)
    if problem.kind == "same_id":
        return _separated(value["scopes"], int(problem.field[1]), good)
    is_right = problem.field[0] == "scopes" and len(problem.field) > 2
    converted, other = _converted(value, problem), _narrow if is_right else _before
    for made in converted or other(value, problem.field, good):
        value_at(value, problem.field[:-1])[problem.field[-1]] = made
        why = "" if converted else ", as in the last valid config"
        if not converted and _before(value, problem.field, good) != [made]:
            why = ", which allows least"
        return f"Set `{name}` to {_shown(made, problem.field)}{why}."
    return None


def _shown(made: Any, field: Path) -> str:
    """The value for a person; of texts only those of scopes, as others can be secrets."""
    if field[0] == "scopes" or isinstance(made, int):
        return json.dumps(made, ensure_ascii=True)
    return "a value that fits"


def _renamed(value: dict[str, Any], field: Path, name: str, good: Document | None) -> str:
    around, meant = value_at(value, field[:-1]), similar_field(field)
    given = around.pop(str(field[-1]))
    if meant is None or meant in around:
        return f"Removed `{name}`, which is not a field of the config."
    before = _before(value, (*field[:-1], meant), good)
    if not _gives_more(meant, before, given):
        around[meant] = given
        return f"Renamed `{name}` to `{meant}`."
    if before:
        around[meant] = before[0]
    kept = "has its value of the last valid config" if before else "is left out"
    return f"Removed `{name}`. As `{meant}` it would allow more than before, so `{meant}` {kept}."


def _separated(scopes: list[dict[str, Any]], second: int, good: Document | None) -> str:
    """Give the second of two scopes of one id another id, or remove it where it is the first once more.

    The id stays with the one that has the folders of the last valid config: clients were given that one by it.
    """
    ids = [str(scope["id"]).casefold() for scope in scopes]
    first = ids.index(ids[second])
    if scopes[first] == scopes[second]:
        return f"Removed a scope `{scopes.pop(second)['id']}` that was there twice."
    before = good.value.get("scopes", []) if good is not None else []
    known = [one.get("roots") for one in before if str(one.get("id")).casefold() == ids[second]]
    is_known = [scopes[at].get("roots") in known for at in (first, second)]
    other = scopes[first if is_known == [False, True] else second]
    old = other["id"]
    other["id"] = next(made for number in count(2) if (made := f"{old[:60]}-{number}").casefold() not in ids)
    place = " ".join(other.get("roots", [])) or "the computer"
    return f"Gave the second scope of the id `{old}`, for {place}, the id `{other['id']}`."


def _gives_more(name: str, before: list[Any], given: Any) -> bool:
    """Whether a field of this name would allow clients more; a value that is no choice of it is repaired afterwards."""
    if before == [given] or (name in STRICTER and given not in STRICTER[name]):
        return False
    if before:
        return widens(name, before[0], given)
    return widens(name, [] if name in TAKES_AWAY else _DEFAULTS.get(name), given)


def _converted(value: dict[str, Any], problem: Problem) -> list[Any]:
    """The given value in the type that is wanted, as a list of one; empty when it has no single meaning."""
    try:
        given = value_at(value, problem.field)
    except KeyError:
        return []
    kind = problem.kind
    if kind == "int_type" and isinstance(given, str) and given.strip().isdecimal():
        return [int(given)]
    if kind in ("int_type", "int_from_float") and isinstance(given, float) and given.is_integer():
        return [int(given)]
    if kind == "bool_type" and given in ("true", "false"):
        return [given == "true"]
    if kind == "list_type" and isinstance(given, str):
        return [[given]]
    if kind == "string_type" and type(given) is int:
        return [str(given)]
    if kind == "literal_error":
        meant = similar_choice(given, problem.text.partition(";")[0])
        return [] if meant is None else [meant]
    return []


_SAME = ("name", "preferredBackend")
_GIVING = ("capabilities", "roots", "allowedCommands", "environment", "intakeRoots")
_DEFAULTS = {field.alias or name: field.get_default() for name, field in ScopePolicy.model_fields.items()}


def _narrow(value: dict[str, Any], field: Path, good: Document | None) -> list[Any]:
    """A value for a scope's field that allows no more than either config, as a list of one; empty when none is known."""
    name, before = str(field[-1]), _before(value, field, good)
    if len(field) != (4 if field[2] == "policy" else 3):
        return []
    if name in STRICTER:
        return [STRICTER[name][-1]]
    if name in _GIVING and before:
        given = value_at(value, field)
        both = [one for one in given if one in (before[0] or [])] if isinstance(given, list) else []
        return [] if name == "roots" and not both else [both]
    if isinstance(_DEFAULTS.get(name), bool):
        return [False]
    return before if name in _SAME or name.startswith("max") else []


def _before(value: dict[str, Any], field: Path, good: Document | None) -> list[Any]:
    """The last valid config's value of this field, as a list of one; a scope is found by its id."""
    if good is None:
        return []
    path: Path = field
    if len(field) > 2 and field[0] == "scopes":
        try:
            scope_id = value_at(value, (*field[:2], "id"))
            scopes = [scope.get("id") for scope in good.value.get("scopes", [])]
            path = ("scopes", scopes.index(scope_id), *field[2:])
        except (KeyError, ValueError):
            return []
    try:
        return [value_at(good.value, path)]
    except KeyError:
        return []
