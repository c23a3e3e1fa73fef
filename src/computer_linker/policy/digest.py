"""The digest of a request: SHA-256 over its canonical JSON (RFC 8785), whole, so that a changed byte is another request."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from computer_linker.errors import InvalidRequest, LimitExceeded

_MAX_PARTS = 10_000
"""Values in one request, nested ones counted: more than a person could read."""


def canonical_request(scope: str, op: str, target: Any, input: Any, options: Any) -> bytes:
    """The request as its one canonical text. `op` is the operation's own name, never an alias."""
    import rfc8785

    value = {"scope": scope, "op": op, "target": target, "input": input or {}, "options": options or {}}
    _check_parts(value)
    try:
        return "".join(_canonical(value)).encode()
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeEncodeError):
        raise InvalidRequest("The request has a number that has no one canonical form (beyond 53 bits).") from None


def _check_parts(value: Any) -> None:
    """Refuse a value of too many parts before processing it, which takes a tenth of a second per hundred thousand."""
    left, waiting = _MAX_PARTS, [value]
    while waiting:
        found = waiting.pop()
        parts = found.values() if type(found) is dict else found if type(found) is list else ()
        left -= len(parts)
        if left < 0:
            raise LimitExceeded(
                f"A request that needs a person's yes has at most {_MAX_PARTS} values; send it in smaller ones.",
                limit=_MAX_PARTS,
            )
        waiting.extend(parts)


def _canonical(value: Any) -> Iterator[str]:
    """Yield the parts of the canonical text. Strings use the standard library: the same output, without blocking the loop."""
    import rfc8785

    if type(value) is str:
        yield json.dumps(value, ensure_ascii=False)
    elif type(value) is dict:
        for place, name in enumerate(sorted(value, key=lambda name: name.encode("utf-16-be"))):
            yield f"{',' if place else '{'}{json.dumps(name, ensure_ascii=False)}:"
            yield from _canonical(value[name])
        yield "}" if value else "{}"
    elif type(value) is list:
        for place, item in enumerate(value):
            yield "," if place else "["
            yield from _canonical(item)
        yield "]" if value else "[]"
    else:
        yield rfc8785.dumps(value).decode()


def digest_of(canonical: bytes) -> str:
    """The full digest in hexadecimal; never cut short."""
    return hashlib.sha256(canonical).hexdigest()


def digest_of_parts(*parts: str) -> str:
    """Return one digest of several texts; moving a byte from one to the next changes it."""
    sizes = ",".join(str(len(part)) for part in parts)
    return hashlib.sha256("\0".join((sizes, *parts)).encode("utf-8", "surrogatepass")).hexdigest()
