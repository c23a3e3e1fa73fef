"""JSON from outside, read strictly: no doubled keys, no NaN, no lone surrogates, nothing unbounded."""

import json
import re
from typing import Any

from computer_linker.errors import InvalidRequest

MAX_DEPTH = 64
MAX_PARTS = 100_000
_MAX_DIGITS = 64
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class NotJson(InvalidRequest):
    """The text is not JSON at all (a JSON-RPC parse error), unlike JSON we refuse."""


def read_json(raw: bytes | str) -> Any:
    """Parse `raw`. Raises NotJson for broken text and InvalidRequest for what we refuse to read."""
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
    except UnicodeDecodeError:
        raise NotJson("The message is not valid UTF-8.") from None
    check_shape(text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise NotJson(f"The message is not valid JSON (at character {error.pos}).") from None
    except RecursionError:
        raise InvalidRequest(f"The message is nested deeper than {MAX_DEPTH} levels.") from None
    if "\\u" in text and _SURROGATE.search(text):
        _check_surrogates(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise InvalidRequest("The message has an object with a doubled key.")
    return made


def _constant(name: str) -> Any:
    raise InvalidRequest(f"{name} is not JSON.")


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise InvalidRequest(f"The message has a number of more than {_MAX_DIGITS} digits.")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise InvalidRequest("The message has a number too large to represent.")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_float)


def check_shape(text: str) -> None:
    """Refuse what nests too deep or has too many parts, in time that grows with the text and no faster."""
    if text.count("[") + text.count("{") <= MAX_DEPTH and text.count(",") < MAX_PARTS:
        return
    # Escaped quotes are removed first, so that every quote left begins or ends a string.
    plain = text.replace("\\\\", "").replace('\\"', "") if "\\" in text else text
    if plain.count('"') > 2 * MAX_PARTS:
        raise InvalidRequest(f"The message has more than {MAX_PARTS} parts.")
    bare = "".join(plain.split('"')[::2])
    if bare.count(",") + bare.count("[") + bare.count("{") > MAX_PARTS:
        raise InvalidRequest(f"The message has more than {MAX_PARTS} parts.")
    depth = 0
    for char in re.findall(r"[\[\]{}]", bare):
        depth += 1 if char in "[{" else -1
        if depth > MAX_DEPTH:
            raise InvalidRequest(f"The message is nested deeper than {MAX_DEPTH} levels.")


def _check_surrogates(value: Any) -> None:
    """Refuse strings that cannot be UTF-8; they are ambiguous on disk and on the wire."""
    match value:
        case str():
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise InvalidRequest("The message has a lone surrogate in a string.")
        case dict():
            for key, item in value.items():
                _check_surrogates(key)
                _check_surrogates(item)
        case list():
            for item in value:
                _check_surrogates(item)
        case _:
            pass
