"""The id of a JSON-RPC request that could not be read, so that its caller gets an error instead of waiting for a timeout."""

import json
import re
from typing import Any

from computer_linker.errors import InvalidRequest
from computer_linker.model.json_text import check_shape

MAX_ID = 256
"""The longest accepted id, in characters."""
_FRONT = 64 * 1024
"""This many bytes of a message with too many parts are scanned from its start: a few milliseconds."""
_BALANCED = 1 << 20
"""A longer message is not scanned from its end: checking its brackets would take too long."""
_MAX_DIGITS = 18
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]|[^\s"{}\[\]:,]++', re.DOTALL)
_LAST = re.compile(rb',\s*"id"\s*:\s*("(?:[^"\\]++|\\.)*+"|-?[0-9]++)\s*}\s*\Z')
_TAIL = 4096
_BRACKET = re.compile(rb"[\[\]{}]")
_NOTHING = object()


def request_id_of(raw: bytes) -> str | int | None:
    """The id of the request in `raw`, read from its top level alone; None when there is none, or it is ambiguous.

    Answers and notifications have none: an error under an answer's id would be taken for the answer to another request.
    """
    try:
        text = raw.decode("utf-8")
        check_shape(text)
        return id_of(_DECODER.decode(text))
    except InvalidRequest:
        return id_of(_outline(raw))
    except (ValueError, RecursionError):
        return None


def first_id_of(raw: bytes) -> str | int | None:
    """The id of a message that is still incomplete."""
    return id_of(_members(raw[:_FRONT])[0])


def id_of(message: Any) -> str | int | None:
    """The id of a message that was read, if it is one a request may have."""
    if type(message) is not dict or "method" not in message or not message.keys().isdisjoint({"result", "error"}):
        return None
    found = message.get("id")
    if type(found) is str:
        is_text = found.isascii() or not any("\ud800" <= char <= "\udfff" for char in found)
        return found if len(found) <= MAX_ID and is_text else None
    return found if type(found) is int and abs(found) < 10**_MAX_DIGITS else None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    # A repeated name is ambiguous.
    if len(made) != len(pairs) and sum(name == "id" for name, _ in pairs) > 1:
        made["id"] = None
    return made


def _digits(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MAX_DIGITS else None


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_digits)


def _outline(raw: bytes) -> dict[str, Any]:
    """The top level of a message with too many parts or levels, as far as it is scanned."""
    members, is_whole = _members(raw[:_FRONT])
    if is_whole or _NOTHING in members.values():
        return members if is_whole else {}
    last = _last(raw) if len(raw) <= _BALANCED else None
    if last is None:
        return members
    return members | {"id": last} if "id" not in members else {}


def _members(raw: bytes) -> tuple[dict[str, Any], bool]:
    """The first members of the object, only the id with its value, and whether these are all."""
    members: dict[str, Any] = {}
    tokens = _TOKEN.finditer(raw)
    if _next(tokens) != b"{":
        return members, True
    depth, key, place = 1, "", "key"
    while token := _next(tokens):
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
        if depth == 0:
            return members, True
        if depth > 1:
            continue
        if place == "key" and token[:1] == b'"':
            key, place = _text(token), "colon"
        elif place == "colon" and token == b":":
            members[key] = None if key not in members else _NOTHING
            place = "value"
        elif place == "value":
            if key == "id" and members[key] is not _NOTHING:
                members[key] = _value(token)
            place = "comma"
        elif place == "comma" and token == b",":
            place = "key"
        elif not (place == "comma" and token in (b"}", b"]")):
            return {}, True
    return members, False


def _next(tokens: Any) -> bytes:
    found = next(tokens, None)
    return found[0] if found is not None else b""


def _text(token: bytes) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return ""


def _value(token: bytes) -> Any:
    """A string or an integer; anything else is no id."""
    if token[:1] == b'"' and len(token) <= 6 * MAX_ID:
        return _text(token)
    digits = token[1:] if token[:1] == b"-" else token
    return int(token) if digits.isdigit() and len(digits) <= _MAX_DIGITS else _NOTHING


def _last(raw: bytes) -> Any:
    """The id of an object that ends with it, as some clients send it, if everything before is balanced."""
    found = _LAST.search(raw[-_TAIL:])
    if found is None:
        return None
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    bare = b"".join(plain.split(b'"')[::2])
    depth, brackets = 0, _BRACKET.findall(bare)
    for bracket in brackets[:-1]:
        depth += 1 if bracket in b"[{" else -1
        if depth <= 0:
            return None
    return _value(found[1]) if depth == 1 else None
