"""The digest of a request: SHA-256 over its canonical JSON (RFC 8785), whole, so that a changed byte is another request."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from computer_linker.errors import InvalidRequest


def canonical_request(scope: str, op: str, target: Any, input: Any, options: Any) -> bytes:
    """The request as its one canonical text. `op` is the operation's own name, never an alias."""
    import rfc8785

    value = {"scope": scope, "op": op, "target": target, "input": input or {}, "options": options or {}}
    try:
        return "".join(_canonical(value)).encode()
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeEncodeError):
        raise InvalidRequest("The request has a number that has no one canonical form (beyond 53 bits).") from None


def _canonical(value: Any) -> Iterator[str]:
    """The parts of the canonical text. Texts by the standard library, which writes them alike and does not stop the service."""
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
    """One digest of several texts; a byte moved from one to the next is another digest."""
    sizes = ",".join(str(len(part)) for part in parts)
    return hashlib.sha256("\0".join((sizes, *parts)).encode("utf-8", "surrogatepass")).hexdigest()
