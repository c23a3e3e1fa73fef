"""The digest of a request: SHA-256 over its canonical JSON (RFC 8785), whole, so that a changed byte is another request."""

import hashlib
from typing import Any

from computer_linker.errors import InvalidRequest


def canonical_request(scope: str, op: str, target: Any, input: Any, options: Any) -> bytes:
    """The request as its one canonical text. `op` is the operation's own name, never an alias."""
    import rfc8785

    value = {"scope": scope, "op": op, "target": target, "input": input or {}, "options": options or {}}
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError):
        raise InvalidRequest("The request has a number that has no one canonical form (beyond 53 bits).") from None


def digest_of(canonical: bytes) -> str:
    """The full digest in hexadecimal; never cut short."""
    return hashlib.sha256(canonical).hexdigest()


def digest_of_parts(*parts: str) -> str:
    """One digest of several texts; a byte moved from one to the next is another digest."""
    sizes = ",".join(str(len(part)) for part in parts)
    return hashlib.sha256("\0".join((sizes, *parts)).encode("utf-8", "surrogatepass")).hexdigest()
