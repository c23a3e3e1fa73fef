"""Cursors: where a page goes on. Only the owner's show a record's number, because numbers count the events of all principals."""

import re
import secrets

from computer_linker.audit.secret import Key
from computer_linker.errors import InvalidRequest

_SEALED = re.compile(r"s([0-9a-f]{16})([0-9a-f]{16})([0-9a-f]{16})\Z")
_PLAIN = re.compile(r"e([0-9]{1,18})\Z")


def to_cursor(number: int, reader: str | None, key: Key) -> str:
    """The cursor after this event; None is the owner. Any other reader's is sealed for this reader alone."""
    if reader is None:
        return f"e{number}"
    nonce = secrets.token_hex(8)
    hidden = f"{number ^ _pad(nonce, reader, key):016x}"
    return f"s{nonce}{hidden}{_mark(nonce, hidden, reader, key)}"


def from_cursor(cursor: str | None, reader: str | None, key: Key) -> int | None:
    """The event a page goes on after. Raises InvalidRequest for a cursor that this reader was not given."""
    if cursor is None:
        return None
    if reader is None and (plain := _PLAIN.match(cursor)):
        return int(plain[1])
    sealed = _SEALED.match(cursor)
    if reader is not None and sealed and secrets.compare_digest(_mark(sealed[1], sealed[2], reader, key), sealed[3]):
        return int(sealed[2], 16) ^ _pad(sealed[1], reader, key)
    raise InvalidRequest("This cursor is not one of the history's. Leave it out to begin at the start.")


def _pad(nonce: str, reader: str, key: Key) -> int:
    return int(key.seal(b"cursor", f"{nonce} {reader}".encode("utf-8", "surrogatepass"))[:15], 16)


def _mark(nonce: str, hidden: str, reader: str, key: Key) -> str:
    return key.seal(b"cursor-mark", f"{nonce} {hidden} {reader}".encode("utf-8", "surrogatepass"))[:16].decode("ascii")
