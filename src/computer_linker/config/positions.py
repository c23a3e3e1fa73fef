"""Where each field of a JSON text begins, for error messages. Only a file that was refused is scanned."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from computer_linker.errors import Problem

Path = tuple[str | int, ...]
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_SCALAR = re.compile(r"[^\s,\]}]+")


@dataclass
class Positions:
    """Offsets of values and keys by their path, and the keys that occur twice in one object."""

    text: str
    values: dict[Path, int] = field(default_factory=dict)
    keys: dict[Path, int] = field(default_factory=dict)
    doubled: list[tuple[Path, int]] = field(default_factory=list)

    def located(self, problem: Problem) -> Problem:
        """The problem with its line and column: of the field, or of the nearest object around it."""
        at = self.keys.get(problem.field) if problem.kind == "extra_forbidden" else self.values.get(problem.field)
        path = problem.field
        while at is None and path:
            path = path[:-1]
            at = self.values.get(path)
        if at is None:
            return problem
        line, column = line_and_column(self.text, at)
        return replace(problem, line=line, column=column)

    def path_of(self, location: Iterable[str | int]) -> Path:
        """The part of a validation error's location that exists in the text: it also names branches of unions."""
        path: Path = ()
        for part in location:
            if (*path, part) in self.values:
                path = (*path, part)
        return path


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Both counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def scan(text: str) -> Positions:
    """Scan as far as the text is JSON. The caller has limited its depth."""
    found = Positions(text)
    try:
        _value(found, 0, ())
    except (IndexError, ValueError, RecursionError):
        pass
    return found


def syntax_problem(text: str) -> Problem | None:
    """The first place where the text is not JSON; None when it is."""
    try:
        _DECODER.decode(text)
    except json.JSONDecodeError as error:
        reason = (error.msg[:1].lower() + error.msg[1:]).removesuffix(" starting at")
        return Problem((), f"is not valid JSON: {reason}", "syntax", error.lineno, error.colno)
    except (RecursionError, ValueError):
        return None
    return None


def _value(found: Positions, at: int, path: Path) -> int:
    at = _skip(found.text, at)
    found.values[path] = at
    match found.text[at]:
        case "{":
            return _object(found, at + 1, path)
        case "[":
            return _array(found, at + 1, path)
        case '"':
            return _text(found.text, at)[1]
        case _:
            scalar = _SCALAR.match(found.text, at)
            if scalar is None:
                raise ValueError("no value")
            return scalar.end()


def _object(found: Positions, at: int, path: Path) -> int:
    at = _skip(found.text, at)
    while found.text[at] != "}":
        name, after = _text(found.text, at)
        place: Path = (*path, name)
        if place in found.keys:
            found.doubled.append((place, at))
        found.keys[place] = at
        # After the colon.
        at = _skip(found.text, _value(found, _skip(found.text, after) + 1, place))
        at = _skip(found.text, at + 1) if found.text[at] == "," else at
    return at + 1


def _array(found: Positions, at: int, path: Path) -> int:
    at, index = _skip(found.text, at), 0
    while found.text[at] != "]":
        at = _skip(found.text, _value(found, at, (*path, index)))
        at = _skip(found.text, at + 1) if found.text[at] == "," else at
        index += 1
    return at + 1


def _text(text: str, at: int) -> tuple[str, int]:
    value, end = _DECODER.raw_decode(text, at)
    if not isinstance(value, str):
        raise ValueError("no string")
    return value, end


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()
